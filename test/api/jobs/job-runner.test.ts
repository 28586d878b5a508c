/** Several processes run scheduled jobs on one database. Each has a handle of the same file, a runner and a clock. */
import t, { type Test } from 'tap';
import { migrate } from '#api/db/migrate.ts';
import { type JobRunner, startJobRunner } from '#api/jobs/job-runner.ts';
import { openTestDatabase, sharedDatabase } from '#test/support/database.ts';
import { until } from '#test/support/until.ts';

const HOUR = 3_600_000;

type Run = (isStopping: () => boolean) => Promise<void>;

async function processes(t: Test, count: number) {
  const url = await sharedDatabase(t);
  let now = Date.UTC(2026, 0, 1);
  /** Calls of a clock, which a runner makes when it looks for work. */
  let looks = 0;
  const databases = Array.from({ length: count }, () => openTestDatabase(url));
  t.teardown(() => Promise.all(databases.map((db) => db.destroy())));
  for (const db of databases.slice(0, 1)) await migrate(db);
  const start = (run: Run, i = 0): JobRunner => {
    const [db = undefined] = databases.slice(i);
    if (db === undefined) throw new Error('there are fewer processes');
    const runner = startJobRunner({
      db,
      clock: () => {
        looks += 1;
        return now;
      },
      lookMs: 10,
      jobs: [{ name: 'job', periodMs: HOUR, run }],
      onError: (name, error) => t.fail(`${name}: ${error}`),
    });
    t.teardown(() => runner.stop());
    return runner;
  };
  return {
    start,
    advance: (ms: number) => (now += ms),
    /** Resolves when each runner has looked again. */
    async looked(): Promise<void> {
      const enough = looks + 3 * count;
      await until(() => looks >= enough);
    },
  };
}

t.test('runs a job once in each period across processes, and at once for the first time', async (t) => {
  const { start, advance, looked } = await processes(t, 4);
  let runs = 0;
  const run: Run = async () => {
    runs += 1;
  };
  for (let i = 0; i < 4; i += 1) start(run, i);
  await until(() => runs === 1);
  await looked();
  t.equal(runs, 1);
  advance(HOUR - 1);
  await looked();
  t.equal(runs, 1, 'the period ends a millisecond later');
  advance(1);
  await until(() => runs === 2);
  await looked();
  t.equal(runs, 2);
});

t.test('the start of a process makes no job due; setting the clock back stops no job', async (t) => {
  const { start, advance, looked } = await processes(t, 1);
  let runs = 0;
  const run: Run = async () => {
    runs += 1;
  };
  const first = start(run);
  await until(() => runs === 1);
  await first.stop();
  start(run);
  await looked();
  t.equal(runs, 1);
  advance(-365 * 24 * HOUR);
  await until(() => runs === 2);
});

t.test('a run stops when told to, and the next process does the rest', async (t) => {
  const { start } = await processes(t, 2);
  const ran: string[] = [];
  const runUntilStopped =
    (name: string): Run =>
    async (isStopping) => {
      ran.push(name);
      await until(isStopping);
    };
  const first = start(runUntilStopped('first'));
  await until(() => ran.length === 1);
  await first.stop();
  const second = start(runUntilStopped('second'), 1);
  await until(() => ran.length === 2);
  await second.stop();
  t.strictSame(ran, ['first', 'second']);
});
