/**
 * Whose turn a scheduled job is, of all processes on the database. As with deliveries, one column is the time when the
 * job may be begun: a period after it was begun last, or when the lease of whoever runs it has run out, because that
 * process died. Whoever runs it renews the lease; a process that could not, since it hung, has lost the job and is told
 * so.
 */
import type { Kysely } from 'kysely';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { newId, type Random } from '#api/ids.ts';
import { toTimestamp } from '#api/timestamps.ts';
import type { Clock, Millis } from '#shared/clock.ts';

/** How long a job waits for a process that died in it. */
export const LEASE_MS: Millis = 30_000;

export interface JobName {
  readonly name: string;
  readonly periodMs: Millis;
}

export interface LeaseParts {
  readonly db: Kysely<Database>;
  readonly clock: Clock;
  readonly random: Random;
}

export interface JobLease {
  /** @returns false: the lease has run out, and another process may have the job */
  renew(): Promise<boolean>;
  /** Ends it. @param isDone false: the job was cut off, and is due again at once */
  end(isDone: boolean): Promise<void>;
}

/** Makes the jobs known; those that are new are due at once. */
export async function registerJobs({ db, clock }: LeaseParts, jobs: readonly JobName[]): Promise<void> {
  const dueAt = toTimestamp(clock());
  await db
    .insertInto('scheduledJobs')
    .values(jobs.map(({ name }) => ({ name, dueAt, lease: null })))
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
}

/** @returns null: it is not due, or another process runs it */
export async function takeJob(parts: LeaseParts, job: JobName): Promise<JobLease | null> {
  const { db, clock, random } = parts;
  const { name, periodMs } = job;
  const begunAt = clock();
  const now = toTimestamp(begunAt);
  // So far ahead no process puts it: the clock was set back.
  const tooFar = toTimestamp(begunAt + 2 * Math.max(periodMs, LEASE_MS));
  // Most looks find nothing, and cost no write.
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
  // Of all who found it due one changes it; the others no longer find what they saw.
  if (!(await set({ dueAt: until(begunAt), lease }, { column: 'dueAt', is: due.dueAt }))) return null;
  return {
    renew: () => set({ dueAt: until(clock()) }, ours),
    async end(isDone) {
      await set({ dueAt: toTimestamp(isDone ? begunAt + periodMs : clock()), lease: null }, ours);
    },
  };
}
