/** Paths become routes, and their number is bounded. */
import t from 'tap';
import { isId, RouteTree } from '#gateway/workbench/replay/routes/route-tree.ts';

t.test('recognizes path segments that are values', async (t) => {
  for (const id of [
    '1',
    '4711',
    '018f6e2a-4b6c-7d3e-9a1b-2c3d4e5f6a7b',
    '5f3a9c1e',
    'cm5k2q9x0m4c5t0000000a',
    'cmilxdlcvconfrbbjlyj_j',
    'V1StGXR8_Z5jdHi6B-myT',
    'a1b2c3d4e5',
    'report-2026-11-22T08.23.01.pdf',
  ])
    t.ok(isId(id), id);
  for (const word of [
    'v1',
    'items',
    'oauth2',
    'api-keys',
    'internationalization',
    'ten-things-to-know-about-2026',
    'deadbeef',
    'og.png',
    'app.css',
  ])
    t.notOk(isId(word), word);
});

t.test('a literal next to values is a separate route, and also part of the wider one', async (t) => {
  const tree = new RouteTree();
  const texts = (method: string, path: string): string[] =>
    tree.routesOf(method, path).map((route) => tree.texts[route] ?? '');
  t.strictSame(texts('GET', '/items/1'), ['GET /items/{id}']);
  t.strictSame(texts('GET', '/items/2/parts'), ['GET /items/{id}/parts']);
  t.strictSame(texts('GET', '/items/new'), ['GET /items/new', 'GET /items/{id}']);
  t.strictSame(texts('POST', '/items/1'), ['POST /items/{id}']);
  t.strictSame(texts('GET', '/'), ['GET /']);
  t.strictSame(texts('GET', '/a/b/c/d/e/f/g/h/i/j/k/l/m/n'), ['GET /a/b/c/d/e/f/g/h/i/j/k/{rest*}']);
});

t.test('many names at one place are one parameter', async (t) => {
  const tree = new RouteTree();
  const names = Array.from(
    { length: 200 },
    (_, i) =>
      `name-${'abcdefghij'[i % 10]}${'klmnopqrst'[Math.floor(i / 10) % 10]}${'uv'[Math.floor(i / 100)]}`,
  );
  for (const name of names) tree.learn(`/users/${name}/posts`);
  for (const name of names) tree.routesOf('GET', `/users/${name}/posts`);
  t.strictSame(tree.texts, ['GET /users/{id}/posts']);
  const unlearned = new RouteTree();
  for (const name of names) unlearned.routesOf('GET', `/users/${name}/posts`);
  t.equal(unlearned.texts.length, 65, 'names beyond the maximum are not kept');
});

t.test('the number of routes is bounded', async (t) => {
  const tree = new RouteTree();
  for (let a = 0; a < 60; a++) {
    for (let b = 0; b < 60; b++) tree.routesOf('GET', `/x${'abcdefgh'[a % 8]}${a}/y${b}`);
  }
  t.equal(tree.texts.length, 2000);
  t.strictSame(tree.routesOf('GET', '/new/one'), []);
});
