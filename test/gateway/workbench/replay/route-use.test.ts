/** Groups paths into routes, and counts the requests of each client in each minute, both in bounded memory. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import type { Judged } from '#gateway/workbench/replay/judge.ts';
import { isId, RouteUse } from '#gateway/workbench/replay/route-use.ts';
import { policyFile } from '#test/support/gateway.ts';

const set = loadPolicies(
  policyFile('name: a, route: GET /a, identifier: ip, limit: 1, window: 1h'),
  'p.yaml',
);

/** Asks for paths, each as another client. */
function using(paths: readonly string[], usesMax?: number): RouteUse {
  const use = new RouteUse(set, usesMax);
  const judged: Judged = { weighed: { kind: 'logged-ban' }, unknown: [] };
  for (const [i, target] of paths.entries()) {
    const digests = {
      ...{ decision: 'banned' as const, identities: new Map(), address: `client ${i}`, unproven: [] },
      ...{ proves: false, plan: null, policies: [] },
    };
    const reply = { status: 429, bytes: 0, sender: null };
    use.add({ at: 0, method: 'GET', target, digests, ...reply }, judged, 0);
  }
  return use;
}

t.test('recognizes path segments that are values', async (t) => {
  const ids = ['1', '4711', '018f6e2a-4b6c-7d3e-9a1b-2c3d4e5f6a7b', '5f3a9c1e', 'cm5k2q9x0m4c5t0000000a'];
  for (const id of [...ids, 'V1StGXR8_Z5jdHi6B-myT', 'a1b2c3d4e5', 'report-2026-11-22T08.23.01.pdf'])
    t.ok(isId(id), id);
  const words = [
    'v1',
    'items',
    'oauth2',
    'api-keys',
    'internationalization',
    'deadbeef',
    'og.png',
    'app.css',
  ];
  for (const word of [...words, 'ten-things-to-know-about-2026']) t.notOk(isId(word), word);
});

t.test('a path becomes a route, and many names at one place are one parameter', async (t) => {
  const names = Array.from({ length: 66 }, (_, i) => `name-${'abcdefghij'[i % 10]}${'klmnopq'[i % 7]}`);
  const users = names.map((name) => `/users/${name}/posts`);
  const deep = ['/a/b/c/d/e/f/g/h/i/j/k/l', '/a/b/c/d/e/f/g/h/i/j/k/l/m'];
  const counted = ['/', '/items/2/parts', '/items/3/parts', ...deep, ...users].flatMap((path) => [
    path,
    path,
  ]);
  const found = using(counted).end();
  t.match(found.slice(0, 2), [{ requests: 4 }, { requests: 4 }]);
  const routes = found.map(({ route }) => route);
  for (const route of ['/items/{id}/parts', '/users/{id}/posts', `/users/${names[0]}/posts`])
    t.ok(routes.includes(`GET ${route}`), route);
  t.ok(routes.includes('GET /a/b/c/d/e/f/g/h/i/j/k/{rest*}'));
});

t.test('the number of routes, and of clients, is bounded', async (t) => {
  const use = using(['/a', '/a', '/a'], 2);
  t.ok(use.isFull);
  t.match(use.end(), [{ route: 'GET /a', requests: 3, identities: 2 }]);
});
