/**
 * Rows of uploaded files: who owns them, how much room they take, and when they are deleted. A row is written before its
 * grant is returned, so every object has a row. It has no foreign keys, because it stays until the object is deleted.
 *
 * `size` is null until the upload is known, which a bucket does not tell. `claimedAt` says that an answer or a survey named
 * the file (claims.ts). `removedAt` is set in the transaction that deletes the owner: from then on the file is not served
 * and takes no room. The sweep deletes its object and its row when no upload with its grant can be running any more.
 */
import { sql } from 'kysely';
import { deletingWorkspaces } from '#api/db/deleting.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { ApiError } from '#api/errors.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { type FileLocation, keyOf } from './key.ts';
import type { Storage } from './storage.ts';

/** One workspace that fills its share leaves most of the room to the others. */
const WORKSPACE_SHARE = 1 / 10;
/** Time after which an upload has ended, even a slow one to a bucket. */
const UPLOAD_MS_MAX: Millis = 3_600_000;
/** How long a file waits for an answer or a survey that names it. */
const UNCLAIMED_MS: Millis = 24 * 3_600_000;
/** Number of objects that the sweep works on at once. */
const PARALLEL = 8;

const WORKSPACE_FULL =
  'This workspace has no room for this file. Delete files that are no longer needed, or ask the operator of this service for a larger quota.';
const SERVICE_FULL =
  'This service has no room for this file. Its operator has to raise the quota of all files, or delete some.';

/**
 * Refuses a file that does not fit. Files count once their size is known, so grants that are used at the same time may
 * exceed the limit a little.
 *
 * @throws ApiError payload_too_large
 */
export async function refuseFull(
  { db, config }: { readonly db: Database; readonly config: { readonly storageBytesMax: number | null } },
  workspaceId: string,
  bytes: number,
): Promise<void> {
  const bytesMax = config.storageBytesMax;
  if (bytesMax === null) return;
  if ((await usedBytes(db, workspaceId)) + bytes > bytesMax * WORKSPACE_SHARE) throw noRoom(WORKSPACE_FULL);
  if ((await usedBytes(db)) + bytes > bytesMax) throw noRoom(SERVICE_FULL);
}

function noRoom(text: string): ApiError {
  return new ApiError('payload_too_large', text, { details: { error: text } });
}

/** Sums the sizes of files, by an index. @param workspaceId without it, of all workspaces */
export async function usedBytes(db: Database, workspaceId?: string): Promise<number> {
  const all = db
    .selectFrom('files')
    .select(({ fn }) => fn.sum<number | null>('size').as('bytes'))
    .where('removedAt', 'is', null);
  const some = workspaceId === undefined ? all : all.where('workspaceId', '=', workspaceId);
  return (await some.executeTakeFirstOrThrow()).bytes ?? 0;
}

export async function insertFile(
  db: Database,
  location: FileLocation,
  { surveyId, createdAt }: { readonly surveyId: string | null; readonly createdAt: Timestamp },
): Promise<void> {
  const { workspaceId, access } = location;
  await db
    .insertInto('files')
    .values({ key: keyOf(location), workspaceId, access, surveyId, createdAt })
    .execute();
}

/** Finds the row of a file, unless the file or its workspace was deleted. Only such files are served and stored. */
export async function findFile(db: Database, key: string) {
  const row = await db
    .selectFrom('files')
    .select(['workspaceId', 'size'])
    .where('key', '=', key)
    .where('removedAt', 'is', null)
    .where('workspaceId', 'not in', deletingWorkspaces(db))
    .executeTakeFirst();
  return row ?? null;
}

/** Records the size of a file that was stored. @returns false if it was deleted meanwhile */
export async function recordSize(db: Database, key: string, size: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('files')
    .set({ size })
    .where('key', '=', key)
    .where('removedAt', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Deletes the files of an owner, or one file. Call it in the transaction that deletes the owner. */
export async function removeFiles(
  db: Database,
  owner: Readonly<Partial<Record<'key' | 'responseId' | 'surveyId' | 'workspaceId', string>>>,
  now: Timestamp,
): Promise<void> {
  const [[column, id] = ['key', '']] = Object.entries(owner);
  await db
    .updateTable('files')
    .set({ removedAt: now })
    .where(sql.ref(column), '=', id)
    .where('removedAt', 'is', null)
    .execute();
}

/**
 * Deletes files that nothing named within a day, and the objects of deleted files; and looks for the objects of grants
 * without a known result: uploads to a bucket, and those whose process died.
 *
 * @throws StorageUnavailable; the next run continues
 */
export async function sweepFiles(
  { db, storage, clock }: { readonly db: Database; readonly storage: Storage; readonly clock: Clock },
  isStopping: () => boolean = () => false,
): Promise<void> {
  const now = clock();
  const removedAt = toTimestamp(now);
  await db
    .updateTable('files')
    .set({ removedAt })
    .where('claimedAt', 'is', null)
    .where('removedAt', 'is', null)
    .where('createdAt', '<', toTimestamp(now - UNCLAIMED_MS))
    .execute();
  const ended = db
    .selectFrom('files')
    .select('key')
    .where('createdAt', '<', toTimestamp(now - UPLOAD_MS_MAX))
    .orderBy('createdAt')
    .limit(PARALLEL);
  const unknown = ended.where('size', 'is', null).where('removedAt', 'is', null);
  const removed = ended.where('removedAt', 'is not', null);
  /** @param work takes the file out of the query */
  const each = async (query: typeof ended, work: (key: string) => Promise<unknown>): Promise<void> => {
    while (!isStopping()) {
      const files = await query.execute();
      if (files.length === 0) return;
      await Promise.all(files.map(({ key }) => work(key)));
    }
  };
  await each(unknown, async (key) => {
    const object = await storage.find(key);
    if (object === null) await removeFiles(db, { key }, removedAt);
    else await recordSize(db, key, object.size);
  });
  await each(removed, async (key) => {
    await storage.delete(key);
    await db.deleteFrom('files').where('key', '=', key).execute();
  });
}
