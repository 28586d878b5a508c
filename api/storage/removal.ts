/**
 * Deletes files that lost their owner or were never named. Code that deletes a response or a survey calls
 * `removeFilesOf` after the commit. The deletion of a workspace deletes its files before its row. The sweep finds the rest: S3 was away, the process died, or the owner was deleted
 * in another way.
 *
 * First the row is marked, then the object is deleted, then the row. After a crash the next sweep finds the marked row.
 * The row of a young grant stays for an hour, and then its object is deleted again, in case an upload was still running
 * or the form was used again.
 */
import type { Database } from '#api/db/schema.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { type File, markRemoved, markStored, releaseGrant, settleRemoved } from './files.ts';
import type { StorageQuota } from './quota.ts';
import type { Storage } from './storage.ts';
import {
  listFilesOf,
  listOrphans,
  type Owner,
  removedFiles,
  unclaimedFiles,
  unsettledFiles,
} from './unneeded-files.ts';

/** Maximum number of files that are deleted while the caller waits. The sweep deletes the rest. */
const AT_ONCE_MAX = 100;
const SWEEP_MAX = 1_000;
const PARALLEL = 8;
/** Time after which an upload has ended, even a slow one to a bucket. */
export const UPLOAD_MS_MAX: Millis = 3_600_000;
/**
 * After this time an upload to the API has ended, and nearly every upload to a bucket. If the file is missing then, its
 * bytes are released.
 */
const RESERVED_MS: Millis = 600_000;
/** How long a file waits for an answer or a survey that names it. */
const UNCLAIMED_MS: Millis = 24 * 3_600_000;

export interface RemovalLog {
  error(fields: object, message: string): void;
}

export interface RemovalParts {
  readonly db: Database;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly config: { readonly storageQuota: StorageQuota };
}

/** Deletes the files of an owner. Never rejects, because the owner is already deleted. */
export async function removeFilesOf(parts: RemovalParts, owner: Owner, log: RemovalLog): Promise<void> {
  try {
    await removeSomeFilesOf(parts, owner, AT_ONCE_MAX);
  } catch (error) {
    log.error({ err: error, ...owner }, 'files could not be removed; the next sweep tries again');
  }
}

/** Deletes some files of an owner that is still to be deleted. @returns their number @throws StorageUnavailable */
export async function removeSomeFilesOf(parts: RemovalParts, owner: Owner, limit: number): Promise<number> {
  const files = await listFilesOf(parts.db, owner, limit);
  await inParallel(files, ({ key }) => removeFile(parts, key));
  return files.length;
}

/** Deletes a file, even if it has no row. @throws StorageUnavailable */
export async function removeFile({ db, storage, clock }: RemovalParts, key: string): Promise<void> {
  const now = clock();
  await markRemoved(db, key, toTimestamp(now));
  await storage.delete(key);
  await settleRemoved(db, key, toTimestamp(now - UPLOAD_MS_MAX));
}

/**
 * Deletes files without an owner, files that nobody named, and the remains of deleted ones.
 *
 * @returns the number of files; if it equals `limit`, there may be more @throws StorageUnavailable
 */
export async function sweepFiles(parts: RemovalParts, limit = SWEEP_MAX): Promise<number> {
  const { db, clock } = parts;
  const now = clock();
  const orphans = await listOrphans(db, limit);
  await inParallel(orphans, ({ key }) => removeFile(parts, key));

  const unclaimed = await unclaimedFiles(
    db,
    toTimestamp(now - UNCLAIMED_MS),
    limit - orphans.length,
  ).execute();
  await inParallel(unclaimed, async ({ key }) => {
    // The write checks again, because an answer may have named the file.
    if (await markRemoved(db, key, toTimestamp(now), true)) await removeFile(parts, key);
  });

  const found = orphans.length + unclaimed.length;
  const removed = await removedFiles(db, toTimestamp(now - UPLOAD_MS_MAX), limit - found).execute();
  await inParallel(removed, ({ key }) => removeFile(parts, key));
  return found + removed.length;
}

/**
 * Looks for the objects of grants without a result: uploads to a bucket, and those whose process died.
 *
 * @throws StorageUnavailable
 */
export async function settleUploads(parts: RemovalParts): Promise<void> {
  const { db, storage, clock, config } = parts;
  const now = clock();
  const ended = toTimestamp(now - UPLOAD_MS_MAX);
  // Each file is looked up twice: when its reservation ends, and before its row is deleted.
  const times = { reserved: toTimestamp(now - RESERVED_MS), ended };
  const unsettled = await unsettledFiles(db, times, SWEEP_MAX).execute();
  await inParallel(unsettled, async ({ key, createdAt }) => {
    const object = await storage.open(key);
    if (object === null) {
      if (createdAt < ended) await removeFile(parts, key);
      else await releaseGrant(db, key);
      return;
    }
    await object.close();
    const outcome = await markStored(db, config.storageQuota, key, object.size, toTimestamp(now));
    if (outcome !== 'stored') await removeFile(parts, key);
  });
}

/**
 * Works on files in parallel. The first failure ends the round, because a store that fails one call will fail the
 * others.
 */
async function inParallel(files: readonly File[], work: (file: File) => Promise<void>): Promise<void> {
  const pending = [...files];
  await Promise.all(
    Array.from({ length: PARALLEL }, async () => {
      for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
        try {
          await work(file);
        } catch (error) {
          pending.length = 0;
          throw error;
        }
      }
    }),
  );
}

/** Sweeps until nothing is left, and deletes the remains of uploads. @throws StorageUnavailable */
export async function sweepAllFiles(
  parts: RemovalParts,
  isStopping: () => boolean,
  limit = SWEEP_MAX,
): Promise<void> {
  await parts.storage.sweep();
  let found: number;
  do found = await sweepFiles(parts, limit);
  while (found >= limit && !isStopping());
}
