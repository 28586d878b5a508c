/**
 * Runs each job once in its period, in one of the processes on the database. The row of a job says when it is due, and the
 * process that moves this time to the next period runs it. If the process dies during a job, the next period does the
 * rest, because every job only does what is still to be done.
 */
import type { Database } from '#api/db/schema.ts';
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
  /** @returns whether the job is due, and this process runs it: one statement tells and moves the time */
  const claim = async ({ name, periodMs }: Job): Promise<boolean> => {
    const now = clock();
    const { numInsertedOrUpdatedRows = 0n } = await db
      .insertInto('scheduledJobs')
      .values({ name, dueAt: toTimestamp(now + periodMs) })
      .onConflict((conflict) =>
        conflict
          .column('name')
          .doUpdateSet({ dueAt: toTimestamp(now + periodMs) })
          .where(({ eb, or }) =>
            or([
              eb('scheduledJobs.dueAt', '<=', toTimestamp(now)),
              // No process sets a time after the next one. If there is one, the clock was set back.
              eb('scheduledJobs.dueAt', '>', toTimestamp(now + 2 * periodMs)),
            ]),
          ),
      )
      .executeTakeFirst();
    return numInsertedOrUpdatedRows > 0n;
  };

  // Each job has its own timer, so that a long job does not delay others.
  const lookers = jobs.map((job) =>
    every(
      lookMs,
      async ({ isStopping }) => {
        if (!(await claim(job))) return;
        let wasCut = false;
        await job.run(() => {
          wasCut ||= isStopping();
          return wasCut;
        });
        if (!wasCut) return;
        const row = db.updateTable('scheduledJobs').set({ dueAt: toTimestamp(clock()) });
        await row.where('name', '=', job.name).execute();
      },
      (error) => onError(job.name, error),
    ),
  );
  return {
    async stop() {
      await Promise.all(lookers.map((looker) => looker.stop()));
    },
  };
}
