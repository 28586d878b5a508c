/** Tests that a line counts for the client that it names, and for nobody if it names none. */
import t from 'tap';
import { detectReader } from '#gateway/workbench/replay/formats/formats.ts';

const REST = '[04/Jul/2026:09:20:46 +0200] "GET /a HTTP/1.1" 200 9 "-" "x"';
const combined = (client: string, rest = REST): string => `${client} - - ${rest}`;

/** Returns the clients of the lines; null for an unreadable one. */
function clientsOf(lines: readonly string[]): readonly (string | null)[] {
  const reader = detectReader(lines, new Map());
  return lines.map((line) => reader?.read(line)?.sender?.client ?? null);
}

t.test('reads lines behind the prefixes of collectors', async (t) => {
  for (const prefix of [
    'web-1  | ',
    'web.1.abcdef@node-2    | ',
    'web-1  | 2026-07-04T07:20:46.123456789Z ',
    '2026-07-04T07:20:46.123456789Z ',
    '2026-07-04T07:20:46.123456789Z stdout F ',
    '2026-07-04T09:20:46.123+02:00 stderr F ',
    '[pod/web-6d4/nginx] ',
    '[pod/web-6d4/nginx] 2026-07-04T07:20:46.123456789Z ',
    'Jul  4 09:20:46 host nginx: ',
    'Jul 14 09:20:46 host nginx[123]: ',
    '<190>Jul  4 09:20:46 host nginx: ',
    '<190>1 2026-07-04T09:20:46.123+02:00 host nginx 123 - - ',
    '2026-07-04T09:20:46+02:00 host nginx: ',
    '2026-07-04T09:20:46+0200 host nginx[123]: ',
    '2026-07-04 09:20:46.123456+0200 host nginx[123]: ',
    'Sat 2026-07-04 09:20:46 CEST host nginx[123]: ',
    '1783149646.123456 host docker/web[123]: ',
    '[12345.678901] host nginx[123]: ',
    'Jul  4 09:20:46 10.0.0.7 nginx: ',
    '2026-07-04T09:20:46+02:00 host nginx: shop.example.org:80 ',
  ])
    t.strictSame(
      clientsOf(['192.0.2.1', '2001:db8::7'].map((client) => prefix + combined(client))),
      ['192.0.2.1', '2001:db8::7'],
      prefix,
    );
});

t.test('reads the client behind the host of vhost_combined', async (t) => {
  const lines = ['shop.example.org:80', 'shop.example.org', '[2001:db8::2]:443', '192.0.2.80:443'].map(
    (host, i) => `${host} ${combined(`192.0.2.${i}`)}`,
  );
  t.strictSame(clientsOf(lines), ['192.0.2.0', '192.0.2.1', '192.0.2.2', '192.0.2.3']);
  const literal = `192.0.2.80 ${combined('192.0.2.9')}`;
  t.strictSame(clientsOf(['shop.test 192.0.2.1 - - '.concat(REST), literal]), ['192.0.2.1', '192.0.2.9']);
  t.strictSame(clientsOf([`192.0.2.1 192.0.2.80 - ${REST}`]), ['192.0.2.1'], 'no line has a host first');
  t.strictSame(clientsOf(['192.0.2.1:51234', '[2001:db8::7]:443'].map((client) => combined(client))), [
    '192.0.2.1:51234',
    '[2001:db8::7]:443',
  ]);
});

t.test('a user name with blanks or an address is no client', async (t) => {
  t.strictSame(clientsOf([`192.0.2.1 - 198.51.100.1 - ${REST}`, `192.0.2.2 - a b ${REST}`]), [
    '192.0.2.1',
    '192.0.2.2',
  ]);
});

t.test('a line without an address is unreadable in every format', async (t) => {
  const lines: Readonly<Record<string, (client: string) => string>> = {
    nginx: combined,
    unknownPrefix: (client) => `something: else ${combined(client === '@' ? client : '@')}`,
    caddy: (client) =>
      JSON.stringify({ ts: 1_793_400_000.5, request: { remote_ip: client, method: 'GET', uri: '/a' } }),
    traefik: (client) =>
      JSON.stringify({ StartUTC: '2026-07-04T07:20:46Z', ClientHost: client, RequestMethod: 'GET' }),
    envoy: (client) =>
      JSON.stringify({
        start_time: '2026-07-04T07:20:46Z',
        downstream_remote_address: client,
        method: 'GET',
        path: '/a',
      }),
  };
  for (const [name, lineOf] of Object.entries(lines))
    for (const none of ['@', 'unix:', 'client.example.org', '192.0.2.256', '-'])
      t.strictSame(
        clientsOf([lineOf('192.0.2.1'), lineOf(none)]),
        [name === 'unknownPrefix' ? null : '192.0.2.1', null],
        `${name} ${none}`,
      );
});

t.test('behind a socket without an address, the client is the one that the proxy names', async (t) => {
  const line = JSON.stringify({
    ts: 1_793_400_000.5,
    request: { remote_ip: '@', client_ip: '192.0.2.1', method: 'GET', uri: '/a' },
  });
  t.match(detectReader([line], new Map())?.read(line)?.sender, { peer: '192.0.2.1', client: '192.0.2.1' });
});

t.test('the third quoted field is X-Forwarded-For only if it is a chain', async (t) => {
  const chainOf = (tail: string): string | undefined =>
    detectReader([combined('192.0.2.1')], new Map())?.read(`${combined('192.0.2.1')}${tail}`)?.sender
      ?.forwardedFor;
  for (const [tail, chain] of [
    [' "198.51.100.7"', '198.51.100.7'],
    [' "unknown, 198.51.100.7:80"', 'unknown, 198.51.100.7:80'],
    [' 0.003 "2001:db8::7"', '2001:db8::7'],
    [' "-"', ''],
    [' 12 "shop@docker" "http://172.19.0.3:80" 2ms', ''],
    [' 12 "-" "-" 0ms', ''],
    [' "shop.example.org"', ''],
    [' rt=0.003 ua="10.0.0.2:80"', ''],
    [' "6f9619ff8b86d011b42d00c04fc964ff"', ''],
  ] as const)
    t.equal(chainOf(tail), chain, tail);
});
