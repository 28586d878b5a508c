/** Clients that wait for the reply before they send the body, and exchanges in which both sides go on sending. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import t from 'tap';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';
import { startBareServer } from './bare-server.ts';
import { send, startRawUpstream } from './exchange.ts';

const head = (path: string, more: string): string => `POST ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n\r\n`;
const LARGE = 'x'.repeat(100_000);

/** Replies at once with a part, and with the rest when the whole body is there. */
function replyFirst(req: IncomingMessage, res: ServerResponse): void {
  res.write('first;');
  let bytes = 0;
  req.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  req.on('end', () => res.end(`${bytes} bytes.`));
}

for (const [name, GATEWAY_OWN_PARSER] of [
  ['our parser', '1'],
  ['node:http', '0'],
] as const)
  t.test(`${name}: the head does not wait for the body`, async (t) => {
    let requests = 0;
    const upstream = await startUpstream(t, (req, res) => {
      requests++;
      replyFirst(req, res);
    });
    const policies = policyFile();
    const { port } = await startTestGateway(t, { upstream, policies, env: { GATEWAY_OWN_PARSER } });
    for (const [fields, body, bytes] of [
      ['Content-Length: 5', 'small', 5],
      [`Content-Length: ${LARGE.length}`, LARGE, LARGE.length],
      ['Transfer-Encoding: chunked', `${LARGE.length.toString(16)}\r\n${LARGE}\r\n0\r\n\r\n`, LARGE.length],
      ['Content-Length: 5\r\nExpect: 100-continue', 'small', 5],
    ] as const) {
      requests = 0;
      const client = sendRaw(port, head('/', fields));
      await client.until(/first;/);
      client.socket.write(body);
      t.match(await client.until(/bytes\./), `${bytes} bytes.`, fields);
      t.equal(requests, 1);
      client.socket.destroy();
    }
  });

t.test('a request whose head was sent alone is not sent twice', async (t) => {
  const heads: string[] = [];
  const upstream = await startRawUpstream(t, (socket, text) => {
    if (!text.endsWith('\r\n\r\n')) return;
    heads.push(text);
    if (text.includes('POST /late')) socket.destroy();
    else socket.write('HTTP/1.1 204 No Content\r\n\r\n');
  });
  const { port, bounds, clients } = await startBareServer(t, { origin: upstream.origin });
  for (const fields of ['Content-Length: 5', 'Transfer-Encoding: chunked']) {
    t.equal((await send(port, '/')).status, 204, 'leaves a connection that is used again');
    heads.length = 0;
    const client = sendRaw(port, head('/late', fields));
    t.match(await client.until(/\}$/), /^HTTP\/1\.1 502 /);
    client.socket.destroy();
    t.equal(heads.length, 1, fields);
  }
  await until(() => bounds.uploads.held === 0 && clients.size === 0, 'everything is given back');
});

t.test('408: a body that never comes, stops, or comes a byte now and then', async (t) => {
  const upstream = await startRawUpstream(t, () => undefined);
  const { port, bounds, clients } = await startBareServer(t, {
    origin: upstream.origin,
    checkMs: 50,
    headDelayMs: 1,
  });
  const silent = [
    head('/', 'Content-Length: 5'),
    head('/', 'Content-Length: 100000'),
    head('/', 'Transfer-Encoding: chunked'),
    `${head('/', 'Content-Length: 100000')}x`,
    `${head('/', 'Transfer-Encoding: chunked')}1\r\nx\r\n`,
  ].map((text) => sendRaw(port, text));
  const trickle = setInterval(() => silent[1]?.socket.write('x'), 20);
  t.teardown(() => clearInterval(trickle));
  for (const client of silent)
    t.match(await client.ended(), /^HTTP\/1\.1 408 Request Timeout\r\n[\s\S]*"message":"the request body/);
  t.equal(upstream.sockets.length, 5, 'each head arrived');
  await until(() => upstream.sockets.every(({ destroyed }) => destroyed), 'the calls are aborted');
  await until(() => bounds.uploads.held === 0 && clients.size === 0, 'everything is given back');
});

t.test('a small body waits for itself where uploads have no room', async (t) => {
  const upstream = await startUpstream(t, (req, res) => void req.resume().on('end', () => res.end('ok')));
  const { port, bounds } = await startBareServer(t, {
    origin: upstream.origin,
    headDelayMs: 1,
    bounds: { uploads: { total: 1, perClient: 1 } },
  });
  const large = sendRaw(port, head('/large', `Content-Length: ${LARGE.length}`));
  await until(() => bounds.uploads.held === 1, 'the upload has the only place');
  const small = sendRaw(port, head('/small', 'Content-Length: 5'));
  for (let i = 0; i < 20; i++) t.equal((await send(port, '/')).status, 200);
  small.socket.write('small');
  t.match(await small.until(/ok$/), /^HTTP\/1\.1 200 OK\r\n/);
  for (const { socket } of [large, small]) socket.destroy();
});

t.test('both sides send: the exchange lasts while the reply flows, although the body rests', async (t) => {
  let writes = 0;
  const upstream = await startUpstream(t, (_req, res) => {
    const timer = setInterval(() => {
      writes++;
      res.write('.');
    }, 50);
    res.on('close', () => clearInterval(timer));
  });
  const CHECK_MS = 100;
  const { port } = await startBareServer(t, { origin: upstream.origin, checkMs: CHECK_MS });
  const client = sendRaw(port, head('/', 'Transfer-Encoding: chunked'));
  await client.until(/200 OK/);
  const begun = performance.now();
  await until(
    () => performance.now() - begun > 45 * CHECK_MS,
    'half as many checks again as cut a slow body',
  );
  t.notOk(client.socket.destroyed);
  const before = writes;
  await until(() => writes > before, 'the reply goes on');
  client.socket.destroy();
});

t.test('a body that trickles is cut if the reply has begun and rests', async (t) => {
  const upstream = await startRawUpstream(t, (socket, text) => {
    if (text.includes('\r\n\r\n') && socket.bytesWritten === 0)
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n');
  });
  const { port, bounds, clients } = await startBareServer(t, { origin: upstream.origin, checkMs: 20 });
  const client = sendRaw(port, head('/', 'Transfer-Encoding: chunked'));
  const trickle = setInterval(() => client.socket.write('1\r\nx\r\n'), 10);
  t.teardown(() => clearInterval(trickle));
  t.match(await client.ended(), /^HTTP\/1\.1 200 OK\r\n/);
  await until(() => upstream.sockets.every(({ destroyed }) => destroyed), 'the call is aborted');
  await until(() => bounds.uploads.held === 0 && clients.size === 0, 'everything is given back');
});
