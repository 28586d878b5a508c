/** Each row of docs/what-does-not-work.md is true. */
import type { Socket } from 'node:net';
import t, { type Test } from 'tap';
import { applicationAddress, keepRedirect } from '#gateway/proxy/redirect.ts';
import { readExchanges } from '#test/gateway/exchanges/document.ts';
import { send, startRawUpstream } from '#test/gateway/proxy/exchange.ts';
import { createAuthority } from '#test/support/certificates.ts';
import { startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { secured } from '#test/support/tls-client.ts';
import { until } from '#test/support/until.ts';
import { readPage } from './pages.ts';

const page = readPage('docs/what-does-not-work.md');
/** The first column. */
const rows = [...page.text.matchAll(/^\| (?!What \||---)(.*?) \| .* \| .* \|$/gm)].map(
  ([, what = '']) => what,
);
const untested = new Set(rows);

/** test/gateway/exchanges holds rows that are only about messages. */
for (const { title } of readExchanges(readPage('test/gateway/exchanges/what-does-not-work.md').text)) {
  const what = rows.find((text) => text.startsWith(title)) ?? '';
  t.ok(what, title);
  untested.delete(what);
}

/** Tests the row that begins with this text. */
function row(begin: string, test: (t: Test) => Promise<void>): void {
  const what = [...untested].find((text) => text.startsWith(begin)) ?? '';
  t.ok(untested.delete(what), begin);
  t.test(what, test);
}

/** @returns everything that the client receives until the reply matches */
async function reply(
  t: Test,
  { port }: TestGateway,
  text: string,
  pattern = /\r\n\r\n[\s\S]*\}$/,
): Promise<string> {
  const client = sendRaw(port, text);
  t.teardown(() => client.socket.destroy());
  return client.until(pattern);
}

row('gRPC', async (t) => {
  let seen = '';
  const upstream = await startRawUpstream(t, (socket, text) => {
    seen = text;
    if (!text.includes('\r\n0\r\n')) return;
    socket.write(
      'HTTP/1.1 200 OK\r\nTrailer: grpc-status\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\ngrpc-status: 0\r\n\r\n',
    );
  });
  const gateway = await startTestGateway(t, { upstream });
  const sent =
    'POST / HTTP/1.1\r\nHost: a\r\nConnection: close, TE\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\nx-sum: 1\r\n\r\n';
  const got = await sendRaw(gateway.port, sent).ended();
  t.match(got, /^HTTP\/1\.1 200/);
  t.notMatch(got, 'grpc-status');
  t.notMatch(seen, 'x-sum');
});

row('HTTP/2 from clients', async (t) => {
  const authority = createAuthority(t);
  const { cert, key } = authority.issue('server', 'IP:127.0.0.1');
  const { port } = await startTestGateway(t, { env: { GATEWAY_TLS_CERT: cert, GATEWAY_TLS_KEY: key } });
  const both = await secured(port, authority.ca, { ALPNProtocols: ['h2', 'http/1.1'] });
  t.teardown(() => both.destroy());
  t.equal(both.alpnProtocol, 'http/1.1');
  await t.rejects(secured(port, authority.ca, { ALPNProtocols: ['h2'] }), /no application protocol/);

  const plain = await startTestGateway(t);
  const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
  t.match(await reply(t, plain, preface), /^HTTP\/1\.1 400[\s\S]*not valid HTTP\/1\.1/);
});

row('Requests sent right behind', async (t) => {
  const { port } = await startTestGateway(t);
  const request = (path: string, fields: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
  const offering = request('/one', 'Connection: Upgrade\r\nUpgrade: h2c\r\n');
  const client = sendRaw(port, offering + request('/two', ''));
  t.teardown(() => client.socket.destroy());
  await client.until(/"url":"\/one"/);
  client.socket.write(request('/three', 'Connection: close\r\n'));
  const got = await client.ended();
  t.strictSame(
    [...got.matchAll(/"url":"(.*?)"/g)].map(([, url]) => url),
    ['/one', '/three'],
  );
});

row('Bytes beyond ASCII', async (t) => {
  const bytes = 'GET /caf\xe9 HTTP/1.1\r\nHost: a\r\n\r\n';
  const own = await startTestGateway(t);
  t.match(await reply(t, own, bytes), /^HTTP\/1\.1 200/);
  const others = await startTestGateway(t, { env: { GATEWAY_OWN_PARSER: '0' } });
  t.match(await reply(t, others, bytes), /^HTTP\/1\.1 400/, 'as with TLS: node:http reads the request line');
});

row('NTLM', async (t) => {
  const sockets = new Set<Socket>();
  let isShared = false;
  const upstream = await startUpstream(t, ({ socket }, res) => {
    isShared ||= sockets.has(socket);
    sockets.add(socket);
    res.end('{}');
  });
  const { port } = await startTestGateway(t, { upstream });
  // Each client has a connection of its own.
  await until(async () => (await send(port, '/')).status === 200 && isShared);
});

row('A redirect of an application on port 80', async (t) => {
  const headers = ['Location', 'http://example.org/docs/'];
  keepRedirect(301, headers, ['Host', 'example.org:8080'], applicationAddress('http://127.0.0.1'));
  t.strictSame(headers, ['Location', 'http://example.org/docs/']);
});

t.strictSame([...untested], [], 'each row has a test');
