/** The cases of clients.md, and lines that name nobody. */
import { join } from 'node:path';
import t from 'tap';
import { detectReader } from '#gateway/workbench/replay/formats/formats.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';

const FILE = join(import.meta.dirname, 'clients.md');
const REST = '[04/Jul/2026:09:20:46 +0200] "GET /a HTTP/1.1" 200 9 "-" "x"';
const combined = (client: string): string => `${client} - - ${REST}`;

/** Returns the clients of the lines; null for an unreadable one. */
function clientsOf(lines: readonly string[]): readonly (string | null)[] {
  const reader = detectReader(lines, new Map());
  return lines.map((line) => reader?.read(line)?.sender?.client ?? null);
}

t.test('reads lines behind the prefixes of collectors', async (t) => {
  for (const [prefix = '', clients = ''] of casesUnder(FILE, 'Behind the prefixes of collectors')) {
    const expected = clients.split(', ');
    t.strictSame(clientsOf(expected.map((client) => prefix + combined(client))), expected, prefix);
  }
});

t.test('reads the client behind other words', async (t) => {
  for (const [lines = '', clients] of casesUnder(FILE, 'Where other words stand before the client'))
    t.equal(clientsOf(lines.replaceAll('LINE', REST).split('|')).join(', '), clients, lines);
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
  const line = combined('192.0.2.1');
  for (const [tail = '', chain] of casesUnder(
    FILE,
    'The third quoted field is X-Forwarded-For only if it is a chain',
  ))
    t.equal(detectReader([line], new Map())?.read(`${line}${tail}`)?.sender?.forwardedFor, chain, tail);
});
