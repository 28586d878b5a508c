/** Several processes run scheduled jobs on one database. Each has a handle of the same file, a runner and a clock. */
import t, { type Test } from 'tap';
import { migrate } from '#api/db/migrate.ts';
import { LEASE_MS, type LeaseParts, registerJobs, takeJob } from '#api/jobs/job-lease.ts';
import { type JobRunner, startJobRunner } from '#api/jobs/job-runner.ts';
import { countingRandom } from '#test/support/api-app.ts';
import { openTestDatabase, sharedDatabase } from '#test/support/database.ts';
import { until } from '#test/support/until.ts';

const HOUR = 3_600_000;
const job = { name: 'job', periodMs: HOUR };

interface Processes {
  readonly parts: readonly LeaseParts[];
  advance(ms: number): void;
}

async function processes(t: Test, count: number): Promise<Processes> {
  const url = await sharedDatabase(t);
  let now = Date.UTC(2026, 0, 1);
  const parts = Array.from({ length: count }, (_, i) => ({
    db: openTestDatabase(url),
    clock: () => now,
    random: countingRandom(`process ${i}`),
  }));
  t.teardown(() => Promise.all(parts.map(({ db }) => db.destroy())));
  for (const { db } of parts.slice(0, 1)) await migrate(db);
  return { parts, advance: (ms) => (now += ms) };
}

t.test('one of many processes gets a due job, and nobody else until its period is over', async (t) => {
  const { parts, advance } = await processes(t, 4);
  await Promise.all(parts.map((one) => registerJobs(one, [job])));
  const take = async () =>
    (await Promise.all(parts.flatMap((one) => [takeJob(one, job), takeJob(one, job)]))).filter(
      (lease) => lease !== null,
    );
  const [lease, ...more] = await take();
  t.strictSame(more, []);
  t.ok(lease);
  advance(LEASE_MS - 1);
  t.strictSame(await take(), [], 'a leased job is not given out');
  await lease?.end(true);
  advance(HOUR - LEASE_MS);
  t.strictSame(await take(), [], 'the period ends a millisecond later');
  await Promise.all(parts.map((one) => registerJobs(one, [job])));
  t.strictSame(await take(), [], 'the start of a process makes no job due');
  advance(1);
  t.equal((await take()).length, 1);
});

t.test('the job of a dead process is due when its lease ends, which the process then loses', async (t) => {
  const { parts, advance } = await processes(t, 2);
  const [one, other] = parts as [LeaseParts, LeaseParts];
  await registerJobs(one, [job]);
  const dead = await takeJob(one, job);
  advance(LEASE_MS - 1);
  t.equal(await dead?.renew(), true);
  advance(LEASE_MS - 1);
  t.equal(await takeJob(other, job), null, 'the lease was renewed');
  advance(1);
  const heir = await takeJob(other, job);
  t.ok(heir);
  t.equal(await dead?.renew(), false);
  await dead?.end(true);
  t.equal(await heir?.renew(), true, 'the first holder cannot change the lease any more');
});

t.test('an interrupted job is due at once; setting the clock back stops no job', async (t) => {
  const { parts, advance } = await processes(t, 1);
  const [one] = parts as [LeaseParts];
  await registerJobs(one, [job]);
  await (await takeJob(one, job))?.end(false);
  const again = await takeJob(one, job);
  t.ok(again);
  await again?.end(true);
  advance(-365 * 24 * HOUR);
  t.ok(await takeJob(one, job));
});

t.test('runs a job once in each period across processes, and a long run keeps its lease', async (t) => {
  const { parts, advance } = await processes(t, 3);
  let runs = 0;
  let atOnce = 0;
  let atOnceMax = 0;
  let finish = (): void => undefined;
  const runners: JobRunner[] = parts.map((one) =>
    startJobRunner({
      ...one,
      lookMs: 10,
      renewMs: 10,
      jobs: [
        {
          ...job,
          async run() {
            runs += 1;
            atOnce += 1;
            atOnceMax = Math.max(atOnceMax, atOnce);
            await new Promise<void>((resolve) => {
              finish = resolve;
            });
            atOnce -= 1;
          },
        },
      ],
      onError: (name, error) => t.fail(`${name}: ${error}`),
    }),
  );
  t.teardown(() => Promise.all(runners.map((runner) => runner.stop())));
  const [{ db, clock }] = parts as [LeaseParts];
  const dueAt = async () =>
    Date.parse((await db.selectFrom('scheduledJobs').select('dueAt').executeTakeFirst())?.dueAt ?? '');
  await until(() => runs === 1);
  for (let i = 0; i < 5; i += 1) {
    // The clock moves by less than the lease, which is renewed before it expires, even on a slow machine.
    advance(LEASE_MS / 2);
    await until(async () => (await dueAt()) === clock() + LEASE_MS);
  }
  t.equal(runs, 1);
  finish();
  await until(async () => (await dueAt()) > clock() + LEASE_MS);
  advance(HOUR);
  await until(() => runs === 2);
  finish();
  await until(async () => (await dueAt()) > clock() + LEASE_MS);
  t.equal(atOnceMax, 1);
});

t.test('a run stops when told to, and the next process does the rest', async (t) => {
  const { parts } = await processes(t, 2);
  const [one, other] = parts as [LeaseParts, LeaseParts];
  const ran: string[] = [];
  const runner = (name: string, parts: LeaseParts): JobRunner =>
    startJobRunner({
      ...parts,
      lookMs: 10,
      jobs: [
        {
          ...job,
          async run(isStopping) {
            ran.push(name);
            await until(isStopping);
          },
        },
      ],
      onError: (job, error) => t.fail(`${job}: ${error}`),
    });
  const first = runner('first', one);
  await until(() => ran.length === 1);
  await first.stop();
  const second = runner('second', other);
  await until(() => ran.length === 2);
  await second.stop();
  t.strictSame(ran, ['first', 'second']);
});
