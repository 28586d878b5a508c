/** Malformed requests are refused before anything is charged for them. */
import t from 'tap';
import { BEHIND_PROXY, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { insideLongWindow } from '#test/support/window.ts';

const POLICIES = policyFile(
  'name: address, route: GET /a, identifier: ip, limit: 2, window: 366d',
  'name: key, route: GET /a, identifier: api-key, limit: 2, window: 366d',
);

async function reply(port: number, head: readonly string[]): Promise<string> {
  const client = sendRaw(port, [...head, '', ''].join('\r\n'));
  const text = await client.until(/\r\n\r\n[\s\S]*\}$/);
  client.socket.destroy();
  return text;
}

const GET = 'GET /a HTTP/1.1';
const MALFORMED: readonly (readonly [string, readonly string[], RegExp])[] = [
  ['two Host headers', [GET, 'Host: a', 'Host: a'], /more than one Host/],
  ['no Host header', [GET], /no Host header/],
  ...['a/b', '', 'a:b', 'a:1,b', '[::1', '[::1]a', 'a%2', 'u@a'].map(
    (host) => [`the Host "${host}"`, [GET, `Host: ${host}`], /not a host name/] as const,
  ),
  ['a user in the target', ['GET http://u@a/b HTTP/1.1', 'Host: a'], /more than a host and a port/],
  ['both lengths', [GET, 'Host: a', 'Content-Length: 1', 'Transfer-Encoding: chunked'], /./],
  ['another transfer coding', [GET, 'Host: a', 'Transfer-Encoding: gzip, chunked'], /only transfer coding/],
  ['chunked twice', [GET, 'Host: a', 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], /./],
  ['a length that no number holds', [GET, 'Host: a', 'Content-Length: 9007199254740993'], /not a length/],
  [
    'a key that Connection names',
    [GET, 'Host: a', 'X-Api-Key: k', 'Connection: close, X-API-Key'],
    /carries a credential/,
  ],
  [
    'Authorization that Connection names',
    [GET, 'Host: a', 'Connection: authorization'],
    /carries a credential/,
  ],
];

t.test('400 closes the connection and charges nothing', async (t) => {
  await insideLongWindow();
  const { sample, port } = await startTestGateway(t, { policies: POLICIES });
  for (const [what, head, reason] of MALFORMED) {
    const text = await reply(port, head);
    t.match(text, /^HTTP\/1\.1 400 /, what);
    t.match(text, /\r\nConnection: close\r\n/i, what);
    t.match(text, reason, what);
  }
  const good = [GET, 'Host: a', 'X-Api-Key: k', 'Connection: keep-alive, X-Other'];
  t.match(await reply(port, good), /^HTTP\/1\.1 200 [\s\S]*r=1;/, 'the first charged request');
  t.match(await reply(port, good), /^HTTP\/1\.1 200 [\s\S]*r=0;/);
  // The parser itself refuses a message with both lengths.
  const malformed = sample('floodgate_requests_total', { outcome: 'malformed' });
  t.ok(malformed >= MALFORMED.length - 2, 'the others are counted as malformed');
});

t.test('X-Forwarded-Host and -Proto of a trusted proxy must be well-formed', async (t) => {
  const { port } = await startTestGateway(t, { policies: POLICIES, env: BEHIND_PROXY });
  const status = async (field: string): Promise<string> =>
    (await reply(port, ['GET /free HTTP/1.1', 'Host: a', field])).slice(9, 12);
  for (const field of [
    'X-Forwarded-Proto: javascript',
    'X-Forwarded-Proto: ',
    'X-Forwarded-Host: a/b?c',
    'X-Forwarded-Host: a"b',
  ]) {
    t.equal(await status(field), '400', field);
  }
  for (const field of [
    'X-Forwarded-Proto: HTTPS',
    'X-Forwarded-Proto: https, http',
    'X-Forwarded-Host: a.test:8443, b',
  ]) {
    t.equal(await status(field), '200', field);
  }
});
