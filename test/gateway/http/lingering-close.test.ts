/** A closed connection delivers the reply first, and holds nothing afterwards. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, createServer as createNetServer, type Socket } from 'node:net';
import t from 'tap';
import { IncomingRequest } from '#gateway/http/incoming-request.ts';
import { discardBody, lingeringClose } from '#gateway/http/lingering-close.ts';
import type { Owner } from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';
import { until } from '#test/support/until.ts';

interface Discarding {
  readonly port: number;
  /** Requests whose body the server is discarding. */
  readonly requests: readonly IncomingMessage[];
}

/** Answers every request before its body has arrived. */
async function startDiscarding(owner: Owner): Promise<Discarding> {
  const requests: IncomingMessage[] = [];
  const server = createServer({ IncomingMessage: IncomingRequest }, (req, res) => {
    requests.push(req);
    res.end('early');
    req.listener = { onSmallPieces: () => undefined };
    discardBody(req.body);
  });
  const port = await listen(owner, server);
  return { port, requests };
}

async function beginUpload(port: number, bytes: number, localAddress?: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n`);
  await once(socket, 'data');
  return socket;
}

const READ_BYTES = 65_536;
const TURNS_PER_TICK = 4;

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Waits until all bytes have been read, and returns how many more reads there were than turns allow.
 *
 * @param ahead number of reads of each connection before it waits
 */
async function readsBeyondTurns(sockets: readonly Socket[], ahead: number, bytes: number): Promise<number> {
  const bytesRead = (): number => sockets.reduce((sum, socket) => sum + socket.bytesRead, 0);
  let beyond = 0;
  for (let allowed = ahead * sockets.length; bytesRead() < bytes; allowed += TURNS_PER_TICK) {
    beyond = Math.max(beyond, Math.ceil(bytesRead() / READ_BYTES) - allowed);
    await nextTurn();
  }
  return beyond;
}

t.test('a client with one connection has as many turns as one with twelve', async (t) => {
  const { port, requests } = await startDiscarding(t);
  const many = await Promise.all(Array.from({ length: 12 }, () => beginUpload(port, 2_000_000, '127.0.0.2')));
  const one = await beginUpload(port, 1_000_000, '127.0.0.3');
  const sockets = requests.map(({ socket }) => socket);
  const last = sockets.pop();
  for (const client of many) client.write(Buffer.alloc(2_000_000));
  one.write(Buffer.alloc(1_000_000));
  while ((last?.bytesRead ?? 0) < 1_000_000) await nextTurn();
  const bytesRead = sockets.reduce((sum, socket) => sum + socket.bytesRead, 0);
  t.ok(
    bytesRead < 8_000_000,
    `${bytesRead} bytes of the twelve, which would be 12 MB if all connections were equal`,
  );
  for (const client of [one, ...many]) client.destroy();
});

t.test('connections that are being closed are read in turn, up to 8 MiB', async (t) => {
  const sockets: Socket[] = [];
  const server = createNetServer((socket) => {
    sockets.push(socket);
    lingeringClose(socket, 'bye');
  });
  const port = await listen(t, server);
  const clients = Array.from({ length: 12 }, () => {
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    client.on('error', () => undefined);
    return client;
  });
  await until(() => sockets.length === 12, 'all connections are accepted');
  for (const client of clients) client.write(Buffer.alloc(1_000_000));
  // A paused socket fills its buffer.
  t.ok((await readsBeyondTurns(sockets, 2, 12_000_000)) <= TURNS_PER_TICK);
  const [first] = clients;
  first?.write(Buffer.alloc(8_000_000));
  await until(() => sockets.some(({ destroyed }) => destroyed), 'the connection is cut');
  for (const { bytesRead } of sockets) t.ok(bytesRead <= 8 * 1024 * 1024 + 2 * READ_BYTES);
  for (const client of clients) client.destroy();
});

const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

t.test('a client that leaves after an early reply leaves no timer behind', async (t) => {
  const { port, requests } = await startDiscarding(t);
  const before = timers();
  for (let i = 0; i < 5; i++) (await beginUpload(port, 1000)).destroy();
  await until(() => requests.every(({ socket }) => socket.closed), 'the server has noticed');
  t.ok(timers() <= before);
});

t.test('a kept-alive connection accumulates no listeners or timers', async (t) => {
  const { port, requests } = await startDiscarding(t);
  const before = timers();
  const socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  let received = '';
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString();
  });
  const answers = (): number => received.split('early').length - 1;
  for (let i = 1; i <= 15; i++) {
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n');
    await until(() => answers() === i, 'an answer before the body');
    socket.write('hello');
  }
  await until(() => requests.every((req) => req.complete), 'all bodies are read');
  const [first] = requests;
  await until(() => (first?.socket.listenerCount('close') ?? 99) < 10, 'no listener for each request');
  await until(() => requests.every((req) => req.closed), 'all requests have ended');
  t.ok(timers() <= before + 1, 'only the timer of the idle connection is left');
});
