/** Connections that wait: for their first request, for the rest of one, or for the next. */

import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { setTimeout as timer, setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { ClientConnection } from '#gateway/http/client-connection.ts';
import { DateField } from '#gateway/http/date-field.ts';
import { RequestOrigin } from '#gateway/http/request-origin.ts';
import { PlainConnection, type PlainConnectionOptions } from '#gateway/listen/plain/plain-connection.ts';
import type { PlainResponse } from '#gateway/listen/plain/plain-response.ts';
import type { Owner } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';
import { unboundedPipelining } from './readers.ts';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

async function start(owner: Owner) {
  const now = (): number => 0;
  const responses: PlainResponse[] = [];
  const errors: string[] = [];
  const accepted: Socket[] = [];
  const handedOver: Socket[] = [];
  const bytes: string[] = [];
  const connections: ClientConnection[] = [];
  const pipelining = unboundedPipelining();
  const options: PlainConnectionOptions = {
    readsRequests: true,
    clock: now,
    date: new DateField(now),
    keepAlive: 'timeout=65',
    pieces: { onSmallPieces: () => undefined },
    pipelining,
    unusedMs: 10_000,
    idleMs: 65_000,
    onRequest: (_connection, _req, res) => void responses.push(res),
    onClientError: ({ code = '' }, socket) => {
      errors.push(code);
      socket.destroy();
    },
    onHandOver: ({ socket }) => {
      handedOver.push(socket);
      bytes.push(socket.read()?.toString() ?? '');
      socket.on('error', () => undefined);
    },
  };
  const origin = new RequestOrigin({ remoteAddress: '127.0.0.1' }, { kind: 'none' });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket);
    const connection = new ClientConnection(socket, origin, null);
    connections.push(connection);
    new PlainConnection(connection, options);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  owner.teardown(() => {
    for (const socket of accepted) socket.destroy();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const check = (at: number): void => {
    for (const { reader } of connections) reader?.check(at);
  };
  const closeIdle = (): void => {
    for (const { reader } of connections) reader?.closeIdle();
  };
  return { port, responses, errors, accepted, handedOver, bytes, check, closeIdle, pipelining };
}

t.test('closes a connection without a request', async (t) => {
  const { check, port, errors, accepted } = await start(t);
  const client = sendRaw(port, '');
  await until(() => accepted.length === 1);
  check(9_999);
  t.notOk(accepted[0]?.destroyed);
  check(10_000);
  t.equal(await client.ended(), '');
  t.same(errors, []);
});

t.test(
  'a connection without a further request is closed, and one with a reply that is due is not',
  async (t) => {
    const { check, port, errors, responses } = await start(t);
    const client = sendRaw(port, GET);
    await until(() => responses.length === 1);
    check(1_000_000);
    responses[0]?.writeHead(200, []);
    responses[0]?.end('ok', 'latin1');
    await client.until(/ok$/);
    await until(() => responses[0]?.writableFinished === true);
    check(66_000);
    await client.ended();
    t.same(errors, []);
  },
);

t.test('a request that has arrived when the time is over is answered', async (t) => {
  const { port, errors, responses, accepted, check, handedOver } = await start(t);
  const client = sendRaw(port, '');
  await Promise.all([once(client.socket, 'connect'), until(() => accepted.length === 1)]);
  for (const [i, waitedMs] of [10_000, 66_000, 66_000].entries()) {
    // The checks are timers too.
    await timer();
    // It is in the kernel before this returns.
    client.socket.write(GET);
    check(waitedMs);
    await until(() => responses.length === i + 1 || client.socket.closed);
    responses[i]?.writeHead(200, []);
    responses[i]?.end(`ok ${i}`, 'latin1');
    await client.until(new RegExp(`ok ${i}$`));
    await until(() => responses[i]?.writableFinished === true);
  }
  await timer();
  client.socket.write('GET / HTTP/1.0\r\n\r\n');
  check(66_000);
  await until(() => handedOver.length === 1 || client.socket.closed);
  t.equal(handedOver[0]?.destroyed, false);
  t.same(errors, []);
  client.socket.destroy();
});

t.test('an empty line behind a request is no request', async (t) => {
  const { port, responses, accepted, handedOver, check } = await start(t);
  const client = sendRaw(port, '');
  let sent = 0;
  const send = async (text: string): Promise<void> => {
    client.socket.write(text);
    sent += text.length;
    await until(() => accepted[0]?.bytesRead === sent);
  };
  for (const [i, isBeforeReply] of [true, false, true].entries()) {
    await send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n');
    await send(isBeforeReply ? 'ab\r\n' : 'ab');
    if (isBeforeReply) await send('\r\n');
    responses[i]?.writeHead(200, []);
    responses[i]?.end(`ok ${i}`, 'latin1');
    await client.until(new RegExp(`ok ${i}$`));
    await send('\r\n');
  }
  t.same(handedOver, []);
  await until(() => responses[2]?.writableFinished === true);
  check(66_000);
  await client.ended();
});

t.test('the end of a head that arrives before the last reply is no empty line', async (t) => {
  const { port, responses, accepted, bytes } = await start(t);
  const client = sendRaw(port, GET);
  await until(() => responses.length === 1);
  client.socket.write(GET.slice(0, -2));
  await until(() => accepted[0]?.bytesRead === 2 * GET.length - 2);
  client.socket.write('\r\n');
  await until(() => accepted[0]?.bytesRead === 2 * GET.length);
  responses[0]?.writeHead(200, []);
  responses[0]?.end('ok', 'latin1');
  await until(() => bytes.length === 1);
  t.same(bytes, [GET]);
  client.socket.destroy();
});

t.test('reading stops when much has arrived behind a request, and all of it counts', async (t) => {
  const { port, responses, accepted, handedOver, pipelining } = await start(t);
  const client = sendRaw(port, GET);
  await until(() => responses.length === 1);
  client.socket.write(GET.repeat(200_000));
  await until(() => accepted[0]?.isPaused() === true);
  for (let i = 0; i < 100; i++) {
    await turn();
    const behind = (accepted[0]?.bytesRead ?? 0) - GET.length;
    t.ok(behind <= 4096 * pipelining.bound.held, `${behind} bytes, ${pipelining.bound.held} units`);
  }
  t.ok(pipelining.bound.held <= 52, 'at most 208 KiB');
  responses[0]?.writeHead(200, []);
  responses[0]?.end('ok', 'latin1');
  await until(() => handedOver.length === 1);
  t.equal(pipelining.bound.held, 0, 'given back');
});

t.test('reading goes on when the start of a request has waited for the end of a reply', async (t) => {
  const { port, responses, accepted } = await start(t);
  const client = sendRaw(port, GET);
  await until(() => responses.length === 1);
  client.socket.pause();
  responses[0]?.writeHead(200, []);
  responses[0]?.end('x'.repeat(16_000_000), 'latin1');
  t.equal(responses[0]?.writableFinished, false, 'the client has not read all of it');
  const post = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 16384\r\n\r\n${'x'.repeat(16_384)}`;
  client.socket.write(post.slice(0, -10));
  await until(() => accepted[0]?.isPaused() === true);
  client.socket.resume();
  client.socket.write(post.slice(-10));
  await until(() => responses.length === 2);
  await until(() => responses[1]?.req.complete === true);
  client.socket.destroy();
});

t.test('a client that leaves is noticed although little has arrived behind its request', async (t) => {
  const { port, responses, accepted, pipelining } = await start(t);
  const client = sendRaw(port, GET);
  await until(() => responses.length === 1);
  client.socket.write(GET);
  await until(() => pipelining.bound.held === 1);
  client.socket.destroy();
  await until(() => accepted[0]?.destroyed === true);
});

t.test('an idle connection is kept for a second longer than announced', async (t) => {
  const { port, responses, accepted, check } = await start(t);
  const client = sendRaw(port, GET);
  await until(() => responses.length === 1);
  responses[0]?.writeHead(200, []);
  responses[0]?.end('ok', 'latin1');
  await client.until(/ok$/);
  await until(() => responses[0]?.writableFinished === true);
  check(65_999);
  await turn();
  t.equal(accepted[0]?.destroyed, false);
  check(66_000);
  await client.ended();
});

t.test('408: a body that takes an hour, with its reply before its end', async (t) => {
  const { check, port, errors, responses } = await start(t);
  const client = sendRaw(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n');
  await until(() => responses.length === 1);
  check(3_600_000);
  await client.ended();
  t.same(errors, ['ERR_HTTP_REQUEST_TIMEOUT']);
});

t.test('closeIdle keeps new connections, and those with a request or a body', async (t) => {
  const { closeIdle, port, responses, accepted } = await start(t);
  const fresh = sendRaw(port, '');
  const asking = sendRaw(port, GET);
  await until(() => responses.length === 1 && accepted.length === 2);
  const sending = sendRaw(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n');
  await until(() => responses.length === 2);
  responses[1]?.writeHead(200, []);
  responses[1]?.end('early', 'latin1');
  await sending.until(/early$/);
  const idle = sendRaw(port, GET);
  await until(() => responses.length === 3);
  responses[2]?.writeHead(200, []);
  responses[2]?.end('done', 'latin1');
  await idle.until(/done$/);
  await until(() => responses.every(({ writableFinished }, i) => writableFinished || i === 0));
  closeIdle();
  await idle.ended();
  t.same(
    [fresh, asking, sending].map(({ socket }) => socket.closed),
    [false, false, false],
  );
  for (const { socket } of [fresh, asking, sending]) socket.destroy();
});

t.test('closeIdle spares a connection whose request has arrived', async (t) => {
  const { closeIdle, port, responses } = await start(t);
  const client = sendRaw(port, GET);
  await until(() => responses.length === 1);
  responses[0]?.writeHead(200, []);
  responses[0]?.end('ok', 'latin1');
  await client.until(/ok$/);
  await until(() => responses[0]?.writableFinished === true);
  await timer();
  client.socket.write(GET);
  closeIdle();
  await until(() => responses.length === 2 || client.socket.closed);
  t.notOk(client.socket.closed);
  client.socket.destroy();
});

t.test('a connection that was handed over is neither checked nor closed', async (t) => {
  const { closeIdle, check, port, errors, handedOver, bytes } = await start(t);
  const client = sendRaw(port, 'GET / HTTP/1.0\r\n\r\n');
  await until(() => handedOver.length === 1);
  t.same(bytes, ['GET / HTTP/1.0\r\n\r\n'], 'the bytes are passed on unread');
  check(1_000_000);
  closeIdle();
  t.equal(handedOver[0]?.destroyed, false);
  t.same(errors, []);
  client.socket.destroy();
});
