import { join } from 'node:path';
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { createMatcher, type Matcher } from '#gateway/policy/match.ts';
import { meaningOf, readTarget } from '#gateway/policy/target.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
import { fc } from '#test/support/fast-check.ts';
import { policyFile } from '#test/support/gateway.ts';

const ROUTES = join(import.meta.dirname, 'routes.md');

/** Builds a matcher whose policies are named by their index, from `p0`. */
function matcherOf(routes: readonly string[], exclude: readonly string[] = []): Matcher {
  return createMatcher(
    loadPolicies(
      JSON.stringify({
        version: 1,
        identifiers: { ip: { source: 'client-address' } },
        exclude,
        policies: routes.map((route, i) => ({
          name: `p${i}`,
          route,
          identifier: 'ip',
          limit: 5,
          window: '1m',
        })),
      }),
      'policies.json',
    ),
  );
}

/** Returns the names of the matching policies. */
function matched(match: Matcher, method: string, target: string): string {
  const result = match(method, target);
  if (!result.ok) return '400';
  return (result.cover?.policies ?? []).map(({ name }) => name).join(' ');
}

t.test('a policy and a closed route count if they cover any reading of the path', async (t) => {
  const none = 'version: 1\nidentifiers: { ip: { source: client-address } }\npolicies: []';
  for (const [route = '', hits = '', misses = ''] of casesUnder(ROUTES, 'Requests')) {
    const match = matcherOf([route]);
    const closed = createMatcher(loadPolicies(`${none}\ndeny: [{ route: '${route}' }]\n`, 'p.yaml'));
    for (const target of hits.split(' ')) {
      t.equal(matched(match, 'GET', target), 'p0', `${route} covers ${target}`);
      t.match(closed('GET', target), { closedBy: { text: route } }, `${route} closes ${target}`);
    }
    for (const target of misses.split(' ').filter(Boolean)) {
      t.equal(matched(match, 'GET', target), '', `${route} leaves ${target}`);
      t.match(closed('GET', target), { closedBy: null }, `${route} does not close ${target}`);
    }
  }
});

t.test('an exclusion, of the file or of one policy, needs all readings', async (t) => {
  const excluding = matcherOf(['* *'], ['GET /health/*']);
  const excepting = createMatcher(
    loadPolicies(
      policyFile('name: p0, route: "* *", except: [GET /health/*], identifier: ip, limit: 5, window: 1m'),
      'p.yaml',
    ),
  );
  for (const match of [excluding, excepting]) {
    for (const target of ['/health/', '/health/a%2Fb', '/health//x', '/health/a;v=1', '/health/50%25de'])
      t.equal(matched(match, 'GET', target), '', target);
    for (const target of [
      '/health;v=1',
      '/health/..%2Fadmin',
      '/health/..;/admin',
      '/health/%252e%252e/admin',
      '/health/%2e%2e%5cx',
    ])
      t.equal(matched(match, 'GET', target), 'p0', target);
  }
});

t.test('a cover has each identifier and each counter once', async (t) => {
  const set = loadPolicies(
    `version: 1
identifiers:
  ip: { source: client-address }
  key: { source: [{ header: x-api-key }] }
policies:
  - { name: first, route: GET /first, identifier: ip, limit: 5, window: 1m, bucket: shared }
  - { name: other, route: GET /*, identifier: key, limit: 5, window: 1m }
  - { name: second, route: GET /a/*, identifier: ip, limit: 5, window: 1m, bucket: shared }
  - { name: third, route: GET /a/b, identifier: ip, limit: 5, window: 1m, bucket: shared }
`,
    'policies.yaml',
  );
  const result = createMatcher(set)('GET', '/a/b');
  const cover = result.ok ? result.cover : null;
  t.strictSame(
    cover?.policies.map(({ name }) => name),
    ['other', 'second', 'third'],
  );
  t.strictSame(
    cover?.identifiers.map(({ name }) => name),
    ['key', 'ip'],
  );
  t.strictSame(
    cover?.counters.map(({ counter }) => counter.policy.name),
    ['other', 'second'],
    'a shared counter has the name of the first row that matches',
  );
});

t.test('remembers a bounded number of targets', async (t) => {
  const match = matcherOf(['GET /a/*']);
  const first = match('GET', '/a/first');
  t.equal(match('GET', '/a/first'), first, 'the result is remembered');
  const long = `/a/${'x'.repeat(300)}`;
  t.not(match('GET', long), match('GET', long), 'a long target is not remembered');
  for (let i = 0; i < 5000; i++) match(i % 2 === 0 ? 'GET' : 'POST', `/a/${i}`);
  t.not(match('GET', '/a/first'), first, 'the result was dropped');
  t.strictSame(match('GET', '/a/first'), first);
});

t.test('remembers a bounded number of covers, because requests choose which conditions hold', async (t) => {
  const names = Array.from({ length: 11 }, (_, i) => `q${i}`);
  const rows = names.map(
    (name) => `name: ${name}, route: GET /a, identifier: ip, query: [${name}], limit: 5, window: 1m`,
  );
  const match = createMatcher(loadPolicies(policyFile(...rows), 'policies.yaml'));
  const cover = (chosen: number) => {
    const result = match('GET', `/a?${names.filter((_, i) => ((chosen >> i) & 1) === 1).join('&')}`);
    return result.ok ? result.cover : null;
  };
  const first = cover(1);
  t.equal(cover(1), first, 'it is remembered');
  for (let chosen = 1; chosen < 2 ** names.length; chosen++) cover(chosen);
  t.not(cover(1), first, 'it was dropped');
  t.strictSame(
    cover(5)?.policies.map(({ name }) => name),
    ['q0', 'q2'],
  );
});

t.test('the tree finds the same as a naive matcher', async () => {
  const segment = fc.constantFrom('a', 'b', 'c', '{x}', '%40');
  const pattern = fc
    .tuple(fc.array(segment, { maxLength: 4 }), fc.constantFrom('', '/*', '/{r*}'))
    .map(([segments, tail]) => segments.map((text) => `/${text}`).join('') + tail || '/');
  const methods = fc.constantFrom('GET', 'PUT', 'GET,PUT', '*');
  const route = fc.tuple(methods, pattern).map((parts) => parts.join(' '));
  const part = fc.constantFrom(
    ...['a', 'b', 'c', 'a;x', 'b%3Bx', '..;', '..', '@', '%40', 'a%2Fb', '..%2F', '%2561', ''],
  );
  const path = fc.array(part, { maxLength: 6 }).map((parts) => `/${parts.join('/')}`);
  fc.assert(
    fc.property(
      fc.uniqueArray(route, { minLength: 1, maxLength: 8 }),
      fc.constantFrom<readonly string[]>([], ['GET /a'], ['GET /b/*', '* /c/{x}']),
      fc.array(fc.tuple(fc.constantFrom('GET', 'HEAD', 'PUT', 'DELETE'), path), {
        minLength: 1,
        maxLength: 6,
      }),
      (routes, exclude, requests) => {
        const reachable = routes.filter((text) => !exclude.includes(text) && !isUnreachable(text, exclude));
        const match = matcherOf(reachable, exclude);
        for (const [method, target] of requests) {
          const expected = naive(reachable, exclude, method, target);
          const found = matched(match, method, target);
          if (found !== expected)
            throw new Error(`${method} ${target} of ${reachable.join('; ')}: "${found}", not "${expected}"`);
        }
      },
    ),
    { numRuns: 300 },
  );

  function isUnreachable(text: string, exclude: readonly string[]): boolean {
    try {
      matcherOf([text], exclude);
      return false;
    } catch {
      return true;
    }
  }
});

/** Matches naively, with a regular expression for each route. Returns the names of the policies. */
function naive(
  routes: readonly string[],
  exclude: readonly string[],
  method: string,
  target: string,
): string {
  const read = readTarget(target);
  if (!read.ok) return '400';
  const paths = [read.path, ...read.others];
  if (paths.every((path) => exclude.some((route) => covers(route, method, path)))) return '';
  const names = new Set<number>();
  for (const path of paths)
    for (const [i, route] of routes.entries()) if (covers(route, method, path)) names.add(i);
  return [...names]
    .sort((a, b) => a - b)
    .map((i) => `p${i}`)
    .join(' ');
}

function covers(route: string, method: string, path: string): boolean {
  const [methods = '', pattern = ''] = route.split(' ');
  const asked = method === 'HEAD' ? 'GET' : method;
  if (methods !== '*' && !methods.split(',').includes(asked)) return false;
  const source = pattern
    .replaceAll('%40', '@')
    .replace(/\/\{r\*\}$/, '/.+')
    .replace(/\/\*$/, '(?:/.*)?')
    .replaceAll('{x}', '[^/]+');
  // A slash inside a segment is no boundary.
  const segments = path.split('/').map((segment) => meaningOf(segment).replaceAll('/', '|'));
  return new RegExp(`^${source === '(?:/.*)?' ? '/.*' : source}$`).test(segments.join('/'));
}
