/**
 * What the database knows of uploaded files: a row for every key that was granted, written before the grant is given
 * away. So every object that exists, wherever it lives, has a row. The rows have no foreign keys: they must outlive
 * their owner until the object is gone, and they outlive every upload under their grant, also when the file is deleted.
 * Writes go to `files` and, through quota.ts, to `storageUsage`.
 */
import type { Kysely, Selectable } from 'kysely';
import type { Database, FileTable, Timestamp } from '#api/db/schema.ts';
import type { FileLocation } from './key.ts';
import { keyOf } from './key.ts';
import { QuotaExceeded, releaseBytes, reserveBytes, type StorageQuota } from './quota.ts';

export type File = Selectable<FileTable>;

/** @throws QuotaExceeded when the largest size that is granted has no room */
export async function insertFile(
  db: Kysely<Database>,
  quota: StorageQuota,
  {
    location,
    surveyId,
    bytesMax,
    createdAt,
  }: { location: FileLocation; surveyId: string | null; bytesMax: number; createdAt: Timestamp },
): Promise<void> {
  const { workspaceId, access } = location;
  await db.transaction().execute(async (trx) => {
    await reserveBytes(trx, quota, workspaceId, bytesMax);
    await trx
      .insertInto('files')
      .values({
        key: keyOf(location),
        workspaceId,
        access,
        surveyId,
        responseId: null,
        size: null,
        storedAt: null,
        createdAt,
        countedBytes: bytesMax,
        claimedAt: null,
        removedAt: null,
      })
      .execute();
  });
}

/** Whether the key may be uploaded to and served: it was granted, and its file was not deleted since. */
export async function isGranted(db: Kysely<Database>, key: string): Promise<boolean> {
  const row = await db
    .selectFrom('files')
    .select('key')
    .where('key', '=', key)
    .where('removedAt', 'is', null)
    .executeTakeFirst();
  return row !== undefined;
}

/** `gone`: deleted meanwhile; `full`: there is no room for it. In both cases the object must go. */
type StoredOutcome = 'stored' | 'gone' | 'full';

/** The object is there. */
export async function markStored(
  db: Kysely<Database>,
  quota: StorageQuota,
  key: string,
  size: number,
  now: Timestamp,
): Promise<StoredOutcome> {
  try {
    return await db.transaction().execute(async (trx): Promise<StoredOutcome> => {
      // The write comes first: nobody deletes the file or stores another version from here on.
      const row = await trx
        .updateTable('files')
        .set({ size, storedAt: now })
        .where('key', '=', key)
        .where('removedAt', 'is', null)
        .returning(['workspaceId', 'countedBytes'])
        .executeTakeFirst();
      if (row === undefined) return 'gone';
      const more = size - row.countedBytes;
      if (more > 0) await reserveBytes(trx, quota, row.workspaceId, more);
      else await releaseBytes(trx, row.workspaceId, -more);
      await trx.updateTable('files').set({ countedBytes: size }).where('key', '=', key).execute();
      return 'stored';
    });
  } catch (error) {
    if (error instanceof QuotaExceeded) return 'full';
    throw error;
  }
}

/**
 * From here on the file is deleted, whatever becomes of the object at first.
 *
 * @param onlyUnclaimed not when somebody has named it in the meantime
 * @returns whether it is; false also when there is no such row
 */
export async function markRemoved(
  db: Kysely<Database>,
  key: string,
  now: Timestamp,
  onlyUnclaimed = false,
): Promise<boolean> {
  let update = db
    .updateTable('files')
    .set((row) => ({ removedAt: row.fn.coalesce('removedAt', row.val(now)) }))
    .where('key', '=', key);
  if (onlyUnclaimed) update = update.where('claimedAt', 'is', null);
  const { numUpdatedRows } = await update.executeTakeFirst();
  return numUpdatedRows > 0n;
}

/**
 * The object is gone, so its bytes are free. The row goes too, unless the grant is so young that an upload may be under way.
 *
 * @param before rows of older grants go
 */
export async function settleRemoved(db: Kysely<Database>, key: string, before: Timestamp): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await trx
      .deleteFrom('files')
      .where('key', '=', key)
      .where('removedAt', 'is not', null)
      .where('createdAt', '<', before)
      .returning(['workspaceId', 'countedBytes'])
      .executeTakeFirst();
    if (row === undefined) return releaseCounted(trx, key);
    await releaseBytes(trx, row.workspaceId, row.countedBytes);
  });
}

/** The grant was not used as far as we can see: it takes no more room. */
export async function releaseGrant(db: Kysely<Database>, key: string): Promise<void> {
  await db.transaction().execute((trx) => releaseCounted(trx, key));
}

async function releaseCounted(trx: Kysely<Database>, key: string): Promise<void> {
  const row = await trx
    .selectFrom('files')
    .select(['workspaceId', 'countedBytes'])
    .where('key', '=', key)
    .executeTakeFirst();
  if (row === undefined) return;
  const { numUpdatedRows } = await trx
    .updateTable('files')
    .set({ countedBytes: 0 })
    .where('key', '=', key)
    .where('countedBytes', '=', row.countedBytes)
    .executeTakeFirst();
  if (numUpdatedRows > 0n) await releaseBytes(trx, row.workspaceId, row.countedBytes);
}
