/** Groups paths into routes, and counts the requests of each client in each minute, both in bounded memory. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import type { Judged } from '#gateway/workbench/replay/judge.ts';
import { isId, RoutePatterns } from '#gateway/workbench/replay/route-patterns.ts';
import { Frequencies, RouteUse } from '#gateway/workbench/replay/route-use.ts';
import { policyFile } from '#test/support/gateway.ts';

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

t.test('a path becomes a route, and many names at one place are one parameter', async (t) => {
  const patterns = new RoutePatterns();
  t.equal(patterns.of('/'), '/');
  t.equal(patterns.of('/items/2/parts'), '/items/{id}/parts');
  t.equal(patterns.of('/items/new'), '/items/new');
  t.equal(patterns.of('/a/b/c/d/e/f/g/h/i/j/k/l'), '/a/b/c/d/e/f/g/h/i/j/k/l');
  t.equal(patterns.of('/a/b/c/d/e/f/g/h/i/j/k/l/m'), '/a/b/c/d/e/f/g/h/i/j/k/{rest*}');
  const names = Array.from({ length: 65 }, (_, i) => `name-${'abcdefghij'[i % 10]}${'klmnopq'[i % 7]}`);
  for (const name of names.slice(0, 64)) t.equal(patterns.of(`/users/${name}/posts`), `/users/${name}/posts`);
  t.equal(patterns.of(`/users/${names[64]}/posts`), '/users/{id}/posts');
  t.equal(patterns.of(`/users/${names[0]}/posts`), '/users/{id}/posts');
});

t.test('the number of places, and of clients, is bounded', async (t) => {
  const patterns = new RoutePatterns();
  for (let a = 0; a < 40; a++) for (let b = 0; b < 60; b++) patterns.of(`/x${'abcdefgh'[a % 8]}${a}/y${b}/z`);
  t.equal(patterns.of('/xa0/y0/new'), '/xa0/y0/new');
  t.equal(patterns.of('/xh39/y59/new'), '/xh39/{id}/{id}');

  const set = loadPolicies(
    policyFile('name: a, route: GET /a, identifier: ip, limit: 1, window: 1h'),
    'p.yaml',
  );
  const use = new RouteUse(set, 2);
  const judged: Judged = { weighed: { kind: 'logged-ban' }, unknown: [] };
  for (const name of ['A', 'B', 'C', 'A']) {
    const digests = {
      ...{ decision: 'banned' as const, identities: new Map(), address: name.repeat(22), unproven: [] },
      ...{ proves: false, plan: null, policies: [] },
    };
    const reply = { status: 429, bytes: 0, durationMs: 1, sender: null };
    use.add({ at: 0, method: 'GET', target: '/a', digests, ...reply }, judged, 0);
  }
  t.match(use.end(), [{ route: 'GET /a', requests: 4, identities: 2 }]);
  t.ok(use.isFull);
});

t.test('returns percentiles', async (t) => {
  const frequencies = new Frequencies();
  t.strictSame(frequencies.percentiles([0.5, 1]), [0, 0]);
  for (let i = 1; i <= 100; i++) frequencies.add(i);
  frequencies.add(123_456);
  t.strictSame(frequencies.percentiles([0.5, 0.95, 0.99, 1]), [51, 96, 100, 123_456]);
});
