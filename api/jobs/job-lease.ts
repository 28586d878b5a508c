/**
 * Leases scheduled jobs to one of the processes on the database. As with deliveries, one column is the time when the
 * job may start: a period after its last start, or when the lease of its process expires. The process that runs a job
 * renews the lease. A process that hangs for too long loses the job, and the renewal reports that.
 */
import type { Database, Timestamp } from '#api/db/schema.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock, Millis } from '#shared/clock.ts';

/** How long a job waits if its process dies. */
export const LEASE_MS: Millis = 30_000;

export interface JobName {
  readonly name: string;
  readonly periodMs: Millis;
}

export interface LeaseParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly random: Random;
}

export interface JobLease {
  /** @returns false if the lease has expired, so another process may have the job */
  renew(): Promise<boolean>;
  /** Ends the lease. @param isDone false if the job was interrupted, so it is due again at once */
  end(isDone: boolean): Promise<void>;
}

/** Adds jobs that are new. They are due at once. */
export async function registerJobs({ db, clock }: LeaseParts, jobs: readonly JobName[]): Promise<void> {
  const dueAt = toTimestamp(clock());
  await db
    .insertInto('scheduledJobs')
    .values(jobs.map(({ name }) => ({ name, dueAt, lease: null })))
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
}

/** @returns null if the job is not due, or another process runs it */
export async function takeJob(parts: LeaseParts, job: JobName): Promise<JobLease | null> {
  const { db, clock, random } = parts;
  const { name, periodMs } = job;
  const begunAt = clock();
  const now = toTimestamp(begunAt);
  // No process sets a time after this one. If there is one, the clock was set back.
  const tooFar = toTimestamp(begunAt + 2 * Math.max(periodMs, LEASE_MS));
  // Usually no job is due. Then there is no write.
  const due = await db
    .selectFrom('scheduledJobs')
    .select('dueAt')
    .where('name', '=', name)
    .where((row) => row.or([row('dueAt', '<=', now), row('dueAt', '>', tooFar)]))
    .executeTakeFirst();
  if (due === undefined) return null;

  const lease = newId(random);
  const set = async (
    values: { readonly dueAt: Timestamp; readonly lease?: string | null },
    found: { readonly column: 'dueAt' | 'lease'; readonly is: string },
  ): Promise<boolean> => {
    const { numUpdatedRows } = await db
      .updateTable('scheduledJobs')
      .set(values)
      .where('name', '=', name)
      .where(found.column, '=', found.is)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  };
  const until = (from: Millis): Timestamp => toTimestamp(from + LEASE_MS);
  const ours = { column: 'lease', is: lease } as const;
  // Only one process can change the value that all of them have read.
  if (!(await set({ dueAt: until(begunAt), lease }, { column: 'dueAt', is: due.dueAt }))) return null;
  return {
    renew: () => set({ dueAt: until(clock()) }, ours),
    async end(isDone) {
      await set({ dueAt: toTimestamp(isDone ? begunAt + periodMs : clock()), lease: null }, ours);
    },
  };
}
