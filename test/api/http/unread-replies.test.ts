/** A reply whose client does not read does not stay in memory. */
import type { Socket } from 'node:net';
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

/** Connections on the side of the API. */
const served = new Set<Socket>();
app.server.on('connection', (socket) => {
  served.add(socket);
  socket.on('close', () => served.delete(socket));
});

/** Asks for eight replies and reads none. The kernel holds some MB, so one would not be enough. */
function askAndDoNotRead(): Socket {
  const { socket } = sendRaw(Number(address.port), `GET ${state} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(8));
  socket.pause();
  return socket;
}

t.test('a reply of which nothing is read is cut', async (t) => {
  const begunAt = performance.now();
  askAndDoNotRead();
  await until(() => served.size === 1, 'it is connected');
  await until(() => served.size === 0, 'it is cut');
  t.ok(performance.now() - begunAt >= TIMEOUT_MS, 'not before its time');
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
