/**
 * Runs each job once in its period, in one of the processes on the database. The table `scheduledJobs` has the time from
 * which a job may start. The process that moves this time by a period runs the job. If it dies meanwhile, the next period
 * does the rest. A job that takes longer than its period may run twice at once.
 */
import type { Database, Timestamp } from '#api/db/schema.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { every } from '#api/work/every.ts';
import type { Clock, Millis } from '#shared/clock.ts';

/** How late a job may start. */
const LOOK_MS: Millis = 5_000;

interface Job {
  readonly name: string;
  readonly periodMs: Millis;
  /** @param isStopping a long job calls it between its steps. If true, it ends, and the next run does the rest */
  readonly run: (isStopping: () => boolean) => Promise<void>;
}

export interface JobRunner {
  stop(): Promise<void>;
}

interface JobRunnerOptions {
  readonly db: Database;
  readonly clock: Clock;
  readonly jobs: readonly Job[];
  /** Called when a run failed. The next run comes as usual. */
  readonly onError: (job: string, error: unknown) => void;
  readonly lookMs?: Millis;
}

export function startJobRunner({ db, clock, jobs, onError, lookMs = LOOK_MS }: JobRunnerOptions): JobRunner {
  const move = async (name: string, from: Timestamp, to: Timestamp): Promise<boolean> => {
    const { numUpdatedRows } = await db
      .updateTable('scheduledJobs')
      .set({ dueAt: to })
      .where('name', '=', name)
      .where('dueAt', '=', from)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  };

  const runIfDue = async ({ name, periodMs, run }: Job, isStopping: () => boolean): Promise<void> => {
    const now = clock();
    const due = await dueAt(name);
    // No process sets a time after the next period. If there is one, the clock was set back.
    const isDue = due <= toTimestamp(now) || due > toTimestamp(now + 2 * periodMs);
    const next = toTimestamp(now + periodMs);
    // Only one process can change the value that all of them have read.
    if (!isDue || !(await move(name, due, next))) return;
    let wasCut = false;
    try {
      await run(() => (wasCut ||= isStopping()));
    } finally {
      if (wasCut) await move(name, next, toTimestamp(clock()));
    }
  };

  /** Adds a job that is new. It is due at once. */
  const dueAt = async (name: string): Promise<Timestamp> => {
    const ofJob = db.selectFrom('scheduledJobs').select('dueAt').where('name', '=', name);
    const known = await ofJob.executeTakeFirst();
    if (known !== undefined) return known.dueAt;
    await db
      .insertInto('scheduledJobs')
      .values({ name, dueAt: toTimestamp(clock()) })
      .onConflict((conflict) => conflict.column('name').doNothing())
      .execute();
    return (await ofJob.executeTakeFirstOrThrow()).dueAt;
  };

  // Each job has its own timer, so that a long job does not delay others.
  const lookers = jobs.map((job) =>
    every(
      lookMs,
      ({ isStopping }) => runIfDue(job, isStopping),
      (error) => onError(job.name, error),
    ),
  );
  return {
    async stop() {
      await Promise.all(lookers.map((looker) => looker.stop()));
    },
  };
}
