/**
 * Deletes files that lost their owner, or that nothing named within a day. The transaction that deletes a response or a
 * survey marks its files, and deletes their objects after the commit. The deletion of a workspace deletes its files before
 * its row. The sweep does the rest: S3 was away, or the process died.
 *
 * First the row is marked, then the object is deleted, then the row. The row of a young grant stays for an hour, and then
 * its object is deleted again, in case an upload was still running or the form was used again.
 */
import type { Database, Timestamp } from '#api/db/schema.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { type File, forgetRemoved, markRemoved, markStored, type Owner, releaseBytes } from './files.ts';
import type { StorageQuota } from './quota.ts';
import type { Storage } from './storage.ts';

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

/** Deletes some files of an owner. @returns their number @throws StorageUnavailable */
export async function removeSomeFilesOf(parts: RemovalParts, owner: Owner, limit: number): Promise<number> {
  const all = oldest(parts.db, limit).where(({ eb, or }) =>
    or([eb('removedAt', 'is', null), eb('countedBytes', '>', 0)]),
  );
  const files = await ofOwner(all, owner).execute();
  await inParallel(files, ({ key }) => removeFile(parts, key));
  return files.length;
}

function ofOwner(files: ReturnType<typeof oldest>, owner: Owner): typeof files {
  if ('responseId' in owner) return files.where('responseId', '=', owner.responseId);
  if ('surveyId' in owner) return files.where('surveyId', '=', owner.surveyId);
  return files.where('workspaceId', '=', owner.workspaceId);
}

/** Deletes a file, even if it has no row. @throws StorageUnavailable */
export async function removeFile({ db, storage, clock }: RemovalParts, key: string): Promise<void> {
  const now = clock();
  await markRemoved(db, key, toTimestamp(now));
  await storage.delete(key);
  await forgetRemoved(db, key, toTimestamp(now - UPLOAD_MS_MAX));
}

/**
 * Deletes the remains of deleted files, files that nothing named, and the remains of uploads; and looks for the objects of
 * grants without a result: uploads to a bucket, and those whose process died.
 *
 * @param limit number of files of one step @throws StorageUnavailable
 */
export async function sweepFiles(
  parts: RemovalParts,
  isStopping: () => boolean = () => false,
  limit = SWEEP_MAX,
): Promise<void> {
  const { db, storage, clock } = parts;
  await storage.sweep();
  const now = clock();
  const before = (age: Millis): Timestamp => toTimestamp(now - age);
  const times = { ended: before(UPLOAD_MS_MAX), reserved: before(RESERVED_MS) };
  const steps = [
    { files: removedFiles(db, times.ended, limit), work: ({ key }: File) => removeFile(parts, key) },
    {
      files: unclaimedFiles(db, before(UNCLAIMED_MS), limit),
      async work({ key }: File) {
        // The write checks again, because an answer may have named the file.
        if (await markRemoved(db, key, toTimestamp(now), true)) await removeFile(parts, key);
      },
    },
    {
      // Each file is looked up twice: when its reservation ends, and before its row is deleted.
      files: unsettledFiles(db, times, limit),
      work: (file: File) => settleUpload(parts, file, file.createdAt < times.ended),
    },
  ];
  for (const { files, work } of steps) {
    let found: readonly File[];
    do {
      found = await files.execute();
      await inParallel(found, work);
    } while (found.length === limit && !isStopping());
  }
}

async function settleUpload(parts: RemovalParts, { key }: File, hasEnded: boolean): Promise<void> {
  const { db, storage, clock, config } = parts;
  const object = await storage.find(key);
  if (object === null) return hasEnded ? removeFile(parts, key) : releaseBytes(db, key);
  const outcome = await markStored(db, config.storageQuota, key, object.size, toTimestamp(clock()));
  if (outcome !== 'stored') await removeFile(parts, key);
}

function oldest(db: Database, limit: number) {
  return db.selectFrom('files').selectAll().orderBy('createdAt').orderBy('key').limit(limit);
}

/** Selects deleted files whose grant is old enough to delete the row, or whose object may still exist. */
export function removedFiles(db: Database, before: Timestamp, limit: number) {
  return oldest(db, limit)
    .where('removedAt', 'is not', null)
    .where((where) => where.or([where('createdAt', '<', before), where('countedBytes', '>', 0)]));
}

/** Selects stored files that nothing names, with grants before the given time. */
export function unclaimedFiles(db: Database, before: Timestamp, limit: number) {
  return oldest(db, limit)
    .where('claimedAt', 'is', null)
    .where('storedAt', 'is not', null)
    .where('removedAt', 'is', null)
    .where('createdAt', '<', before);
}

/**
 * Selects grants without a known result.
 *
 * @param times `reserved`: before this time, if they still reserve bytes; `ended`: before this time, in any case
 */
export function unsettledFiles(
  db: Database,
  times: { readonly reserved: Timestamp; readonly ended: Timestamp },
  limit: number,
) {
  return oldest(db, limit)
    .where('storedAt', 'is', null)
    .where('removedAt', 'is', null)
    .where('createdAt', '<', times.reserved)
    .where((where) => where.or([where('countedBytes', '>', 0), where('createdAt', '<', times.ended)]));
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
