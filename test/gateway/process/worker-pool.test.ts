/** Workers that do not become ready, or hang: programs of one line instead of the real ones. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { WorkerPool } from '#gateway/process/worker-pool.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const STAY = 'setInterval(() => {}, 1000);';

function poolOf(
  t: Test,
  program: string,
  startTimeoutMs: number,
  signOfLifeMs?: number,
): { pool: WorkerPool<string>; log: string[] } {
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
    clock: () => performance.now(),
    startTimeoutMs,
    endTimeoutMs: 0,
    ...(signOfLifeMs === undefined ? {} : { signOfLifeMs }),
    log: { warn: tell, error: tell },
    onMessage: (_worker, message) => (message === 'ready' ? 1 : null),
    onEnded: () => undefined,
  });
  t.teardown(() => pool.close());
  return { pool, log };
}

t.test('kills a worker that is not ready in time, and logs it', async (t) => {
  const { pool, log } = poolOf(t, STAY, 300);
  await t.rejects(pool.start(), /could not start/);
  t.match(log, [/not ready after 0\.3 s and was killed.*"pid":\d+/, /ended by a signal.*SIGKILL/]);
});

t.test('waits for a worker that is slow to start', async (t) => {
  const { pool, log } = poolOf(t, `setTimeout(() => process.send('ready'), 500); ${STAY}`, 300_000);
  await pool.start();
  t.equal(pool.ready.size, 1);
  t.strictSame(log, []);
});

t.test('logs that a signal ended a worker before it was ready', async (t) => {
  const { pool, log } = poolOf(t, `process.kill(process.pid, 'SIGKILL'); ${STAY}`, 300_000);
  await t.rejects(pool.start(), /could not start/);
  t.match(log, [/ended by a signal before it was ready.*SIGKILL/]);
});

t.test('a worker that hangs is reported, then killed and replaced', async (t) => {
  const { pool, log } = poolOf(t, `process.send('ready', () => { for (;;); });`, 300_000, 1);
  await pool.start();
  const [first] = pool.ready;
  await until(() => pool.restarts > 0 && pool.ready.size === 1, 'it is replaced');
  t.notOk(first !== undefined && pool.ready.has(first));
  t.match(log.join('\n'), /no sign of life for 10 s.*"pid":\d+[\s\S]*killed.*\n.*replaced.*SIGKILL/);
});
