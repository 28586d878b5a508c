/**
 * Removes files that have lost their owner. Whoever deletes a response or a survey calls `removeFilesOf` after the
 * commit, so that its files go at once; the sweep finds what that left, because S3 was away or the process ended, and
 * what was deleted along other ways. An object is deleted before its row, so none is ever forgotten; a failure is
 * logged and leaves the row for the next sweep.
 */
import type { Kysely } from 'kysely';
import type { Database } from '#api/db/schema.ts';
import { toTimestamp } from '#api/timestamps.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import {
  deleteFile,
  type File,
  listFilesOf,
  listOrphans,
  listUnsettled,
  markStored,
  type Owner,
} from './files.ts';
import type { Storage } from './storage.ts';

/** Removed while the caller waits; the rest is left to the sweep. */
const AT_ONCE_MAX = 100;
const SWEEP_MAX = 1_000;
const PARALLEL = 8;
/** By then an upload has ended, whatever became of it. */
const UNSETTLED_AFTER_MS: Millis = 3_600_000;

export interface RemovalLog {
  error(fields: object, message: string): void;
}

export interface RemovalParts {
  readonly db: Kysely<Database>;
  readonly storage: Storage;
  readonly clock: Clock;
}

/** Never rejects: what it is called for has already been done. */
export async function removeFilesOf(parts: RemovalParts, owner: Owner, log: RemovalLog): Promise<void> {
  try {
    await removeAll(parts, await listFilesOf(parts.db, owner, AT_ONCE_MAX));
  } catch (error) {
    log.error({ err: error, ...owner }, 'files could not be removed; the next sweep tries again');
  }
}

/**
 * One round: files without an owner are removed, and grants of which nothing was heard are looked up.
 *
 * @returns how many rows it settled; as many as `limit` means that there may be more
 */
export async function sweepFiles(parts: RemovalParts, limit = SWEEP_MAX): Promise<number> {
  const { db, storage, clock } = parts;
  const orphans = await listOrphans(db, limit);
  await removeAll(parts, orphans);

  const before = toTimestamp(clock() - UNSETTLED_AFTER_MS);
  const unsettled = await listUnsettled(db, before, limit - orphans.length);
  await inParallel(unsettled, async ({ key }) => {
    const object = await storage.open(key);
    if (object === null) return deleteFile(db, key);
    await object.close();
    await markStored(db, key, object.size, toTimestamp(clock()));
  });
  return orphans.length + unsettled.length;
}

function removeAll({ db, storage }: RemovalParts, files: readonly File[]): Promise<void> {
  return inParallel(files, async ({ key }) => {
    await storage.delete(key);
    await deleteFile(db, key);
  });
}

/** The first failure ends the round: a store that does not answer one call will not answer the others. */
async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const pending = [...items];
  await Promise.all(
    Array.from({ length: PARALLEL }, async () => {
      for (let item = pending.pop(); item !== undefined; item = pending.pop()) {
        try {
          await work(item);
        } catch (error) {
          pending.length = 0;
          throw error;
        }
      }
    }),
  );
}

/** Sweeps until nothing is left, and what uploads left behind. @throws StorageUnavailable */
export async function sweepAllFiles(
  parts: RemovalParts,
  isStopping: () => boolean,
  limit = SWEEP_MAX,
): Promise<void> {
  await parts.storage.sweep();
  let settled: number;
  do settled = await sweepFiles(parts, limit);
  while (settled >= limit && !isStopping());
}
