/** Each row of docs/what-does-not-work.md is true. */
import { METHODS } from 'node:http';
import type { Socket } from 'node:net';
import t, { type Test } from 'tap';
import { applicationAddress, keepRedirect } from '#gateway/proxy/redirect.ts';
import { send, startRawUpstream } from '#test/gateway/proxy/exchange.ts';
import { createAuthority } from '#test/support/certificates.ts';
import { policyFile, startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { secured } from '#test/support/tls-client.ts';
import { until } from '#test/support/until.ts';
import { readPage } from './pages.ts';

const page = readPage('docs/what-does-not-work.md');
/** The first column of the rows that have no test below yet. */
const untested = new Set(
  [...page.text.matchAll(/^\| (?!What \||---)(.*?) \| .* \| .* \|$/gm)].map(([, what = '']) => what),
);

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

  const gateway = await startTestGateway(t);
  t.match(
    await reply(t, gateway, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    /^HTTP\/1\.1 400[\s\S]*not valid HTTP\/1\.1/,
  );
  const upgrade =
    'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n';
  const got = await reply(t, gateway, upgrade);
  t.match(got, /^HTTP\/1\.1 200/);
  t.notMatch(got, /h2c|HTTP2-Settings/i);
});

row('HTTP/2 to the application', async (t) => {
  const got = Promise.withResolvers<string>();
  const upstream = await startRawUpstream(t, (_, text) => got.resolve(text));
  const { port } = await startTestGateway(t, { upstream });
  sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  t.match(await got.promise, /^GET \/ HTTP\/1\.1\r\n/);
});

row('Upgrades with a body', async (t) => {
  const gateway = await startTestGateway(t, { env: { GATEWAY_UPGRADES: 'tcp' } });
  const head = 'POST /exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n';
  const got = await reply(t, gateway, `${head}Content-Length: 2\r\n\r\n{}`);
  t.match(got, /^HTTP\/1\.1 200[\s\S]*"body":"{}"/);
  t.notMatch(got, 'tcp');
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

row('`CONNECT`, `TRACE`', async (t) => {
  const gateway = await startTestGateway(t);
  for (const line of ['CONNECT a.example:443', 'TRACE /'])
    t.match(await reply(t, gateway, `${line} HTTP/1.1\r\nHost: a\r\n\r\n`), /^HTTP\/1\.1 405/);
});

row('`Expect: 100-continue`', async (t) => {
  const seen = Promise.withResolvers<string>();
  const upstream = await startRawUpstream(t, (socket, text) => {
    if (!text.endsWith('body')) return;
    seen.resolve(text);
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}');
  });
  const policies = policyFile('name: one, route: "POST /", identifier: ip, limit: 1, window: 366d');
  const { port } = await startTestGateway(t, { upstream, policies });
  const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n';
  const first = sendRaw(port, head);
  t.teardown(() => first.socket.destroy());
  await first.until(/^HTTP\/1\.1 100 Continue\r\n\r\n$/);
  first.socket.write('body');
  await first.until(/200 OK/);
  t.notMatch(await seen.promise, /expect/i);
  const second = sendRaw(port, head);
  t.teardown(() => second.socket.destroy());
  t.match(await second.until(/\r\n\r\n/), /^HTTP\/1\.1 429/);
});

row('Bodies without', async (t) => {
  const gateway = await startTestGateway(t);
  for (const line of ['SOURCE /live HTTP/1.0', 'PUT /live HTTP/1.1']) {
    const got = await reply(t, gateway, `${line}\r\nHost: a\r\nContent-Type: audio/mpeg\r\n\r\nsound`);
    t.match(got, /^HTTP\/1\.1 200[\s\S]*"body":""/);
  }
});

row('Methods that', async (t) => {
  const gateway = await startTestGateway(t);
  t.notOk(METHODS.includes('FOO'));
  t.match(await reply(t, gateway, 'FOO / HTTP/1.1\r\nHost: a\r\n\r\n'), /^HTTP\/1\.1 400/);
  t.match(await reply(t, gateway, 'MKCALENDAR / HTTP/1.1\r\nHost: a\r\n\r\n'), /^HTTP\/1\.1 200/);
});

row('Paths with dot segments', async (t) => {
  const { port } = await startTestGateway(t);
  const { body } = await send(port, '/a/../b');
  t.match(body.toString(), '"url":"/b"');
});

row('Bytes beyond ASCII', async (t) => {
  const bytes = 'GET /caf\xe9 HTTP/1.1\r\nHost: a\r\n\r\n';
  const own = await startTestGateway(t);
  t.match(await reply(t, own, bytes), /^HTTP\/1\.1 200/);
  const others = await startTestGateway(t, { env: { GATEWAY_OWN_PARSER: '0' } });
  t.match(await reply(t, others, bytes), /^HTTP\/1\.1 400/, 'as with TLS: node:http reads the request line');
});

row('`%00`', async (t) => {
  const { port } = await startTestGateway(t);
  for (const path of ['/a%00b', '/a%0ab', '/%7F']) t.equal((await send(port, path)).status, 400, path);
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

row('Header names with', async (t) => {
  const gateway = await startTestGateway(t);
  t.notMatch(await reply(t, gateway, 'GET / HTTP/1.1\r\nHost: a\r\nX_One: 1\r\n\r\n'), /X_One/i);
  const passing = await startTestGateway(t, { env: { GATEWAY_PASS_HEADERS: 'x_one' } });
  t.match(await reply(t, passing, 'GET / HTTP/1.1\r\nHost: a\r\nX_One: 1\r\n\r\n'), /X_One/i);
});

row('Transfer codings', async (t) => {
  const upstream = await startRawUpstream(t, (socket) =>
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'),
  );
  const gateway = await startTestGateway(t, { upstream });
  const coded = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n';
  t.match(await reply(t, gateway, coded), /^HTTP\/1\.1 400/);
  t.equal((await send(gateway.port, '/')).status, 502);
});

row('Replies that take longer', async (t) => {
  const upstream = await startRawUpstream(t, () => {});
  const { port } = await startTestGateway(t, { upstream, env: { GATEWAY_UPSTREAM_TIMEOUT_MS: '200' } });
  t.equal((await send(port, '/')).status, 504);
});

row('A redirect of an application on port 80', async (t) => {
  const headers = ['Location', 'http://example.org/docs/'];
  keepRedirect(301, headers, ['Host', 'example.org:8080'], applicationAddress('http://127.0.0.1'));
  t.strictSame(headers, ['Location', 'http://example.org/docs/']);
});

t.strictSame([...untested], [], 'each row has a test');
