/** Several processes run scheduled jobs on one database. Each has a handle of the same file, a runner and a clock. */
import t, { type Test } from 'tap';
import { migrate } from '#api/db/migrate.ts';
import { startJobRunner } from '#api/jobs/job-runner.ts';
import { openTestDatabase, sharedDatabase } from '#test/support/database.ts';
import { until } from '#test/support/until.ts';

const HOUR = 3_600_000;

async function processes(t: Test, count: number) {
  const url = await sharedDatabase(t);
  let now = Date.UTC(2026, 0, 1);
  const handles = Array.from({ length: count }, () => openTestDatabase(url));
  t.teardown(() => Promise.all(handles.map((db) => db.destroy())));
  for (const db of handles.slice(0, 1)) await migrate(db);
  const looks = { count: 0 };
  const start = (process: number, run: (isStopping: () => boolean) => Promise<void>) => {
    const db = handles[process];
    if (db === undefined) throw new Error('There is no such process');
    const clock = (): number => {
      looks.count += 1;
      return now;
    };
    const runner = startJobRunner({
      ...{ db, clock, lookMs: 10, jobs: [{ name: 'job', periodMs: HOUR, run }] },
      onError: (name, error) => t.fail(`${name}: ${error}`),
    });
    t.teardown(() => runner.stop());
    return runner;
  };
  /** Resolves when the processes have looked at the job some more times. */
  const looked = async (): Promise<void> => {
    const before = looks.count;
    await until(() => looks.count > before + 10 * count);
  };
  return { start, looked, advance: (ms: number) => (now += ms) };
}

t.test('one of many processes runs a job in each period, also after the clock was set back', async (t) => {
  const { advance, looked, start } = await processes(t, 4);
  let runs = 0;
  for (let i = 0; i < 4; i += 1) {
    start(i, async () => {
      runs += 1;
    });
  }
  await until(() => runs === 1);
  await looked();
  advance(HOUR - 1);
  await looked();
  t.equal(runs, 1, 'the period ends a millisecond later');
  advance(1);
  await until(() => runs === 2);
  advance(-365 * 24 * HOUR);
  await until(() => runs >= 3);
  await looked();
  // A process that had read the clock before may have moved the time to next year once more.
  const then = runs;
  await looked();
  t.equal(runs, then, 'no more in this period');
  t.ok(then <= 6);
});

t.test('a run stops when told to, and the next process does the rest at once', async (t) => {
  const { start } = await processes(t, 2);
  const ran: string[] = [];
  const named = (name: string) => async (isStopping: () => boolean) => {
    ran.push(name);
    await until(isStopping);
  };
  const first = start(0, named('first'));
  await until(() => ran.length === 1);
  await first.stop();
  const second = start(1, named('second'));
  await until(() => ran.length === 2);
  await second.stop();
  t.strictSame(ran, ['first', 'second']);
});
