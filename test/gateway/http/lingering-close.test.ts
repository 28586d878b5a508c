/** A closed connection delivers the reply first, and holds nothing afterwards. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { IncomingRequest } from '#gateway/http/incoming-request.ts';
import { discardBody } from '#gateway/http/lingering-close.ts';
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
    req.listener = { clock: () => 0, onSmallPieces: () => undefined };
    discardBody(req.body);
  });
  const port = await listen(owner, server);
  return { port, requests };
}

async function beginUpload(port: number, bytes: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n`);
  await once(socket, 'data');
  return socket;
}

const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

t.test('a client that leaves after an early reply leaves no timer behind', async (t) => {
  const { port, requests } = await startDiscarding(t);
  const before = timers();
  for (let i = 0; i < 5; i++) (await beginUpload(port, 1000)).destroy();
  await until(() => requests.every(({ socket }) => socket.closed), 'the server has noticed');
  t.ok(timers() <= before);
});

t.test('the last reply of a connection is not lost', async (t) => {
  const { port } = await startDiscarding(t);
  const errors: string[] = [];
  const socket = connect(port, '127.0.0.1');
  socket.on('error', ({ message }) => errors.push(message));
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4000000\r\n\r\n');
  await once(socket, 'readable');
  socket.write(Buffer.alloc(4_000_000));
  t.match(await text(socket).catch(String), /early/);
  t.same(errors, []);
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
