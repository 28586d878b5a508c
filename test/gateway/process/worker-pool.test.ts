/** Workers that do not become ready, or hang: programs of one line instead of the real ones. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { replacementDelayMs, WorkerPool } from '#gateway/process/worker-pool.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const STAY = 'setInterval(() => {}, 1000);';

/** @param tickMs interval in which signs of life are counted */
function poolOf(t: Test, program: string, tickMs: number): { pool: WorkerPool<string>; log: string[] } {
  const main = join(temporaryFolder(t), 'worker.cjs');
  writeFileSync(main, program);
  const log: string[] = [];
  const tell = (fields: object, message: string) => void log.push(`${message} ${JSON.stringify(fields)}`);
  const pool = new WorkerPool<string>({
    main,
    execArgv: [],
    env: () => process.env,
    workers: 1,
    host: '127.0.0.1',
    port: 0,
    reusePort: false,
    clock: () => performance.now(),
    endTimeoutMs: 0,
    tickMs,
    log: { warn: tell, error: tell },
    onMessage: (_worker, message) => (message === 'ready' ? 1 : null),
    onEnded: () => undefined,
  });
  t.teardown(() => pool.close());
  return { pool, log };
}

t.test('a worker that is not ready is reported, and killed after 300 ticks', async (t) => {
  const { pool, log } = poolOf(t, STAY, 1);
  await t.rejects(pool.start(), /could not start/);
  t.equal(log.length, 11);
  t.match(log[0], /not ready for 30 s .*"pid":\d+/);
  t.match(log.slice(-2), [/not ready for 300 s and is killed/, /ended by a signal.*SIGKILL/]);
});

t.test('waits for a worker that is slow to start', async (t) => {
  const { pool, log } = poolOf(t, `setTimeout(() => process.send('ready'), 500); ${STAY}`, 60_000);
  await pool.start();
  t.equal(pool.ready.length, 1);
  t.strictSame(log, []);
});

t.test('logs that a signal ended a worker before it was ready', async (t) => {
  const { pool, log } = poolOf(t, `process.kill(process.pid, 'SIGKILL'); ${STAY}`, 60_000);
  await t.rejects(pool.start(), /could not start/);
  t.match(log, [/ended by a signal before it was ready.*SIGKILL/]);
});

t.test('a worker that hangs is reported, then killed and replaced', async (t) => {
  const { pool, log } = poolOf(t, `process.send('ready', () => { for (;;); });`, 100);
  await pool.start();
  const [first] = pool.ready;
  await until(() => pool.restarts > 0 && pool.ready.length === 1, 'it is replaced');
  t.notOk(first !== undefined && pool.ready.includes(first));
  t.match(
    log.join('\n'),
    /no sign of life for 10 s.*"pid":\d+[\s\S]*for 30 s and is killed[\s\S]*replaced.*SIGKILL/,
  );
});

t.test('a worker that is heard again begins anew', async (t) => {
  const program = `process.on('message', () => process.send('here')); ${STAY}
    process.send('ready');`;
  const { pool, log } = poolOf(t, program, 300);
  await pool.start();
  await until(() => pool.hasSilent);
  for (const worker of pool.ready) worker.send('are you there?');
  await until(() => log.some((line) => line.startsWith('the worker gives signs of life again')));
  t.equal(pool.hasSilent, false);
  t.equal(pool.restarts, 0);
});

t.test('the first replacement comes at once; one that keeps ending waits longer each time', async (t) => {
  const delays = [1, 2, 3, 6, 7, 8].map(replacementDelayMs);
  t.strictSame(delays, [0, 1000, 2000, 16_000, 30_000, 30_000]);
});
