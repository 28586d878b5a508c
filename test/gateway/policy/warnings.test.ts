/** Tests the warnings about policies that are valid but probably mistakes: each kind with its line, and no others. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/load.ts';
import { warningsOf } from '#gateway/policy/warnings.ts';
import { placesIn } from '#gateway/policy/yaml-text.ts';

const HEAD = `version: 1
identifiers:
  ip: { source: client-address }
`;

function warnings(rows: readonly string[], identifiers = ''): string[] {
  const text = `${HEAD}${identifiers}policies:\n${rows.map((row) => `  - { ${row} }`).join('\n')}\n`;
  return warningsOf(loadPolicies(text, 'p.yaml'), placesIn(text)).map(
    ({ line, column, message, fix }) => `${line}:${column} ${message}; ${fix}`,
  );
}

const WIDE = 'name: wide, route: "GET,POST /a/*", identifier: ip, limit: 10, window: 1m';
const narrow = (more: string): string => `name: narrow, route: "GET /a/{id}", identifier: ip, ${more}`;

t.test('warns of a limit that another policy always reaches first', async (t) => {
  const cases: readonly (readonly [more: string, most: number | null])[] = [
    ['limit: 10, window: 1m', 10],
    ['limit: 9, window: 1m', null],
    ['limit: 10, window: 30s', 10],
    ['limit: 600, window: 1h', 600],
    ['limit: 599, window: 1h', null],
    // 90 s touch up to three windows of a minute.
    ['limit: 30, window: 90s', 30],
    ['limit: 29, window: 90s', null],
    // A window that does not divide the other one may overlap two of them.
    ['limit: 20, window: 7s', 20],
    ['limit: 19, window: 7s', null],
    ['limit: 10, window: 1m, onStoreFailure: deny', 10],
  ];
  for (const [more, most] of cases) {
    const told = warnings([WIDE, narrow(more)]);
    t.equal(told.length, most === null ? 0 : 1, more);
    if (most !== null)
      t.match(told[0], new RegExp(`^6:\\d+ never reached: wide in line 5 .* at most ${most} in`));
  }
  t.strictSame(warnings([WIDE.replace('/a/*', '/b/*'), narrow('limit: 50, window: 1m')]), []);
  t.strictSame(
    warnings([`${WIDE}, mode: shadow`, narrow('limit: 50, window: 1m')]),
    [],
    'shadow policies never deny',
  );
  t.strictSame(warnings([`${WIDE}, onStoreFailure: allow`, narrow('limit: 50, window: 1m')]), []);
  t.match(warnings([narrow('limit: 50, window: 1m'), WIDE]), [/^5:\d+ never reached: wide in line 6/]);
  t.match(
    warnings([WIDE, WIDE.replace('name: wide', 'name: twin')]),
    [/^6:\d+ never reached: wide in line 5/],
    'the later of two equal policies',
  );
});

t.test('compares other algorithms by the most that they allow in a window', async (t) => {
  const limit = 'limit: 12, window: 1m';
  t.strictSame(warnings([`${WIDE}, algorithm: sliding-window`, narrow(limit)]).length, 1);
  t.strictSame(warnings([`${WIDE}, algorithm: token-bucket, burst: 2`, narrow(limit)]).length, 1);
  t.strictSame(
    warnings([`${WIDE}, algorithm: token-bucket, burst: 3`, narrow(limit)]),
    [],
    '3 and 10 in a minute',
  );
  t.strictSame(
    warnings([WIDE, narrow(`${limit}, algorithm: sliding-window`)]),
    [],
    'requests of two windows count together',
  );
});

t.test('does not compare limits of different units', async (t) => {
  t.strictSame(warnings([WIDE, narrow('limit: 12, window: 1m, cost: 12')]), []);
  t.strictSame(warnings([`${WIDE}, cost: 2`, narrow('limit: 12, window: 1m')]), []);
  t.strictSame(warnings([narrow('limit: 1000000000, window: 1s, cost: body-bytes')]), []);
});

t.test('a shared bucket counts the requests of all its rows', async (t) => {
  const half = (route: string, bucket: string, limit: number): string =>
    `name: ${route.slice(1)}-${bucket}, route: GET ${route}, identifier: ip, limit: ${limit}, window: 1m, bucket: ${bucket}`;
  const rows = [half('/a', 'x', 20), half('/b', 'x', 20)];
  t.strictSame(warnings([...rows, 'name: only-a, route: GET /a, identifier: ip, limit: 10, window: 1m']), []);
  t.match(warnings([...rows, half('/a', 'y', 10), half('/b', 'y', 10)]), [/^5:/, /^6:/]);
});

t.test('compares clients too', async (t) => {
  const wider = '  net: { source: client-address, ipv6Prefix: 48 }\n  key: { source: [{ header: x-key }] }\n';
  const of = (identifier: string): string => WIDE.replace('identifier: ip', `identifier: ${identifier}`);
  const key = 'name: k, route: GET /k, identifier: key, limit: 1, window: 1m';
  const net = 'name: n, route: GET /n, identifier: net, limit: 1, window: 1m';
  t.match(warnings([of('net'), narrow('limit: 10, window: 1m'), key], wider), [/never reached: wide/]);
  t.strictSame(warnings([of('key'), narrow('limit: 10, window: 1m'), net], wider), []);
});

t.test('warns of policies that can never deny, and of entries that nothing uses', async (t) => {
  t.match(warnings(['name: a, route: CONNECT /a, identifier: ip, limit: 1, window: 1m']), [
    /^5:\d+ CONNECT \/a matches no request/,
  ]);
  t.match(warnings(['name: a, route: GET /a, identifier: ip, limit: 1000000, window: 1s']), [
    /^5:\d+ no client can make 1000000 requests in 1 s/,
  ]);
  t.match(warnings(['name: a, route: GET /a, identifier: ip, limit: 1, window: 1m, bucket: b']), [
    /^5:\d+ nothing shares the bucket b with a/,
  ]);
  const unused = '  key: { source: [{ header: x-key }] }\n';
  const row = 'name: a, route: GET /a, identifier: ip, limit: 1, window: 1m';
  t.strictSame(warnings([row], unused), ['4:3 no policy uses the identifier key; use it, or remove it']);
  const stopped = '  key: { source: [{ header: x_key }, { bearer: k_ }] }\n';
  t.match(warnings([row, 'name: b, route: GET /b, identifier: key, limit: 1, window: 1m'], stopped), [
    /^4:3 the gateway removes the header x_key of key/,
  ]);
  const host = '  key: { source: [{ header: host }] }\n';
  t.strictSame(
    warnings([row, 'name: b, route: GET /b, identifier: key, limit: 1, window: 1m'], host),
    [],
    'the application gets the Host field',
  );
});

t.test('warns of a body field that one client can invent without a limit', async (t) => {
  const login = 'name: login, route: "POST /login", identifier: { body: email }, limit: 5, window: 1m';
  const address = 'name: address, route: "POST /*", identifier: ip, limit: 100, window: 1m';
  const told =
    '5:54 login counts a field that clients can invent, and no policy counts their addresses on this route; add a policy by address, or one client can try any number of values';
  t.strictSame(warnings([login, address]), []);
  t.strictSame(warnings([login, address.replace('/*', '/other')])[0], told);
  t.strictSame(warnings([login, `${address}, mode: shadow`])[0], told);
});
