/** A reply whose client does not read does not stay in memory. */
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { pino } from 'pino';
import t from 'tap';
import { buildApp } from '#api/app.ts';
import { startApi, surveyBody, workspaceId } from '#test/support/api-app.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';

const api = await startApi(t);
const TIMEOUT_MS = 600;
const TICK_MS = TIMEOUT_MS / 12;
const app = await buildApp(api.context, pino({ level: 'silent' }), () => true, TIMEOUT_MS);
const address = new URL(await app.listen({ port: 0, host: '127.0.0.1' }));
t.teardown(() => app.close());
const questions = [{ id: 'q1', type: 'openText', headline: 'x'.repeat(950_000) }];
for (let i = 0; i < 2; i++) {
  await api.manage('POST', '/api/v1/management/surveys', surveyBody({ type: 'website', questions }));
}
const state = `/api/v1/client/${workspaceId}/environment`;

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** Connections on the side of the API. */
const served = new Set<Socket>();
app.server.on('connection', (socket) => {
  served.add(socket);
  socket.on('close', () => served.delete(socket));
});

/** The number of bytes that the kernel has taken. */
function takenBytes(socket: Socket): number {
  const handle: { bytesWritten: number; writeQueueSize: number } = Reflect.get(socket, '_handle');
  return handle.bytesWritten - handle.writeQueueSize;
}

/** Asks for eight replies and reads none. The kernel holds some MB, so one would not be enough. */
function askAndDoNotRead(): Socket {
  const { socket } = sendRaw(Number(address.port), `GET ${state} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(8));
  socket.pause();
  return socket;
}

t.test('a reply of which nothing is read is cut, and a slow request beside it is not', async (t) => {
  const slow = sendRaw(
    Number(address.port),
    `POST /api/v1/client/${workspaceId}/displays HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{`,
  );
  askAndDoNotRead();
  await until(() => served.size === 2, 'both are connected');
  await until(() => served.size === 1, 'the one that does not read is cut');
  slow.socket.write('}');
  t.match(await slow.until(/\r\n\r\n/), /^HTTP\/1.1 400/);
  slow.socket.destroy();
  await until(() => served.size === 0, 'the slow one has left');
});

// On a busy machine fewer ticks fit into the time, never more, so they bound it from above. A clock bounds it from below.
t.test('a reply without progress ends after its time, not after twice its time', async (t) => {
  askAndDoNotRead();
  await until(() => served.size === 1, 'it is connected');
  const [socket] = [...served] as [Socket];
  let [ticks, taken] = [0, -1];
  let sampledAt = performance.now();
  let notEarlierThan = sampledAt;
  while (!socket.destroyed) {
    const now = takenBytes(socket);
    ticks = now === taken ? ticks + 1 : 0;
    if (now !== taken) notEarlierThan = sampledAt;
    [taken, sampledAt] = [now, performance.now()];
    await delay(TICK_MS);
  }
  const elapsedMs = performance.now() - notEarlierThan;
  t.ok(ticks <= 15, `cut after ${ticks} twelfths of its time`);
  t.ok(elapsedMs >= TIMEOUT_MS - TICK_MS, `cut after ${elapsedMs} ms`);
});

t.test('bytes that the client sends meanwhile are no progress of its reply', async (t) => {
  const client = askAndDoNotRead();
  await until(() => served.size === 1, 'it is connected');
  client.on('error', () => undefined);
  const sending = setInterval(() => client.write('G'), TICK_MS);
  t.teardown(() => clearInterval(sending));
  await until(() => served.size === 0, 'it is cut although it sends');
  t.pass('it is cut although it sends');
});

t.test('a client that leaves in the middle of its replies leaves nothing behind', async (t) => {
  const client = askAndDoNotRead();
  await until(() => served.size === 1, 'it is connected');
  const [socket] = [...served].map((one) => new WeakRef(one));
  await until(() => (socket?.deref()?.writableLength ?? 0) > 0, 'a reply has begun');
  client.destroy();
  await until(() => served.size === 0, 'it has left');
  for (let ticks = 0; ticks < 24 && socket?.deref() !== undefined; ticks += 1) {
    await delay(TICK_MS);
    collectGarbage();
  }
  t.equal(socket?.deref(), undefined);
});

t.test('a reader that pauses again and again gets its replies whole', async (t) => {
  const one = await fetch(new URL(state, address), { headers: { connection: 'close' } });
  const size = (await one.arrayBuffer()).byteLength;
  await until(() => served.size === 0, 'that connection is closed');
  const reader = askAndDoNotRead();
  let [bytes, pieces] = [0, 0];
  reader.on('data', (piece: Buffer) => {
    bytes += piece.length;
    pieces += 1;
    if (pieces % 20 > 0) return;
    reader.pause();
    setTimeout(() => reader.resume(), TICK_MS);
  });
  reader.resume();
  await until(() => bytes > 8 * size || reader.closed, 'all is read, or the connection is cut');
  t.ok(bytes > 8 * size, `${bytes} bytes`);
  reader.destroy();
});
