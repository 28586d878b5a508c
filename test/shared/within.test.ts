/** A server in another thread answers while the event loop of this one stands still. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { timeLimit, within } from '#shared/within.ts';
import { stall } from '#test/support/stall.ts';

const LIMIT_MS = 50;

const SERVER = `
  const { createServer } = require('node:net');
  const { parentPort, workerData } = require('node:worker_threads');
  const answered = new Int32Array(workerData);
  const server = createServer((socket) => {
    socket.on('data', () => socket.end('answer', () => {
      Atomics.add(answered, 0, 1);
      Atomics.notify(answered, 0);
    }));
  }).listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

const answers = new Int32Array(new SharedArrayBuffer(4));
const worker = new Worker(SERVER, { eval: true, workerData: answers.buffer });
const [port]: number[] = await once(worker, 'message');
t.teardown(() => worker.terminate());

/** Stands still until the server has answered once more, and beyond every limit of this file. */
function stallUntilAnswered(before: number): void {
  Atomics.wait(answers, 0, before);
  stall(4 * LIMIT_MS);
}

t.test('within: an answer that came during a stall is read', async (t) => {
  const socket = connect(port ?? 0, '127.0.0.1');
  t.teardown(() => socket.destroy());
  await once(socket, 'connect');
  const before = Atomics.load(answers, 0);
  const answer = within(LIMIT_MS, once(socket, 'data'));
  socket.write('?');
  stallUntilAnswered(before);
  t.match(String(await answer), /^answer$/);
});

t.test('timeLimit: an answer that came during a stall is read', async (t) => {
  const socket = connect(port ?? 0, '127.0.0.1');
  t.teardown(() => socket.destroy());
  await once(socket, 'connect');
  const before = Atomics.load(answers, 0);
  const answer = once(socket, 'data', { signal: timeLimit(LIMIT_MS) });
  socket.write('?');
  stallUntilAnswered(before);
  t.match(String(await answer), /^answer$/);
});

t.test('both end without an answer', async (t) => {
  const never = new Promise<never>(() => undefined);
  await t.rejects(within(LIMIT_MS, never), { message: `no answer within ${LIMIT_MS} ms` });
  const signal = timeLimit(LIMIT_MS);
  const keepsAlive = setTimeout(() => undefined, 60_000);
  await once(signal, 'abort');
  clearTimeout(keepsAlive);
  t.match(signal.reason, { name: 'TimeoutError' }, 'as with AbortSignal.timeout');
});
