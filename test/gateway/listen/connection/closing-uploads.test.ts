/**
 * A client that asks for the end of the connection, as old proxies do, gets the reply to an upload that was answered
 * early. If the connection were reset while the client still sends, some clients would lose the reply.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { startBareServer } from '#test/gateway/proxy/bare-server.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { until } from '#test/support/until.ts';

const POLICIES = policyFile('name: denied, route: POST /denied, identifier: ip, limit: 1, window: 366d');
const NEXT = 'GET /next HTTP/1.1\r\nHost: a\r\n\r\n';

const PATHS: Readonly<Record<string, RegExp>> = {
  '/denied': /^HTTP\/1\.1 429 [\s\S]*\}$/,
  '/whole': /^HTTP\/1\.1 413 [\s\S]*\r\n\r\ntoo large$/,
  '/chunked': /^HTTP\/1\.1 413 [\s\S]*too large\r\n0\r\n\r\n$/,
};
const FRAMINGS: Readonly<Record<string, (bytes: number) => readonly [string, string]>> = {
  length: (bytes) => [`Content-Length: ${bytes}`, 'x'.repeat(bytes)],
  chunks: (bytes) => [
    'Transfer-Encoding: chunked',
    `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n0\r\n\r\n`,
  ],
};

for (const [parser, env] of [
  ['our parser', {}],
  ['node:http', { GATEWAY_OWN_PARSER: '0' }],
] as const)
  t.test(`${parser}: the reply comes before the end of the connection`, async (t) => {
    const paths: unknown[] = [];
    let finish = (): void => undefined;
    const upstream = await startUpstream(t, ({ url }, res) => {
      paths.push(url);
      res.writeHead(413, url === '/whole' ? { 'content-length': 9 } : {});
      // A reply that is read at once is sent on with its length, so the head has to arrive alone.
      if (url === '/chunked') {
        res.flushHeaders();
        finish = () => res.end('too large');
      } else setTimeout(() => res.end('too large'), 20);
    });
    const { port } = await startTestGateway(t, { upstream, env, policies: POLICIES });
    await send(port, '/denied', { method: 'POST', body: 'the first' });

    for (const [path, expected] of Object.entries(PATHS))
      for (const [framing, bodyOf] of Object.entries(FRAMINGS))
        for (const bytes of path === '/denied' ? [10_000, 4_000_000] : [20_000, 4_000_000]) {
          const name = `${path} ${framing} ${bytes}`;
          const [field, body] = bodyOf(bytes);
          const socket = connect(port, '127.0.0.1');
          const errors: string[] = [];
          socket.on('error', ({ message }) => errors.push(message));
          const begin = body.slice(0, 8000);
          socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${field}\r\n\r\n${begin}`);
          await once(socket, 'readable');
          finish();
          socket.write(body.slice(begin.length) + (path === '/chunked' ? '' : NEXT));
          const reply = await text(socket).catch(String);
          t.match(reply, expected, name);
          t.match(reply, /\r\nConnection: close\r\n/i, name);
          t.same(errors, [], name);
        }
    t.notOk(paths.includes('/next'), 'a request behind the last one is not served');
  });

t.test('so does a client whose upload is answered while the gateway shuts down', async (t) => {
  const paths: unknown[] = [];
  const upstream = await startUpstream(t, (req, res) => {
    paths.push(req.url);
    res.writeHead(413, { 'content-length': 9 });
    void until(() => gateway.upstream.draining).then(() => res.end('too large'));
  });
  const gateway = await startBareServer(t, { origin: upstream.origin });
  const body = 'x'.repeat(4_000_000);
  const head = `POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`;
  const socket = connect({ port: gateway.port, host: '127.0.0.1', allowHalfOpen: true });
  socket.write(`${head}${body.slice(0, 8000)}`);
  await until(() => paths.length === 1);
  gateway.upstream.draining = true;
  let reply = '';
  socket.on('data', (bytes) => {
    reply += String(bytes);
  });
  await once(socket, 'end');
  t.match(reply, /^HTTP\/1\.1 413 [\s\S]*\r\nConnection: close\r\n[\s\S]*too large$/);
  socket.write(body.slice(8000) + NEXT);
  // The client still listens, so a request that is served would reach the application.
  await new Promise((resolve) => setTimeout(resolve, 200));
  t.same(paths, ['/up'], 'a request behind the last one is not served');
  socket.end();
  await until(() => gateway.bounds.connections.held === 0, 'the connection is over');
});

t.test('what follows bytes that are no request is read up to 8 MiB, after the reply', async (t) => {
  const { port } = await startTestGateway(t, { policies: POLICIES });
  for (const [bytes, isCut] of [
    [7_000_000, false],
    [100_000_000, true],
  ] as const) {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    let reply = '';
    socket.on('data', (piece) => {
      reply += String(piece);
    });
    socket.write('NO REQUEST\r\n\r\n');
    await until(() => reply.endsWith('}'), 'the reply');
    t.match(reply, /^HTTP\/1\.1 400 /);
    socket.on('error', () => undefined);
    await new Promise<void>((resolve) => socket.end(Buffer.alloc(bytes), () => resolve()));
    t.equal(socket.errored !== null, isCut, `${bytes} bytes`);
    socket.destroy();
  }
});
