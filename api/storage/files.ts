/**
 * Rows of uploaded files. Every granted key has a row, which is written before the grant is returned. So every object has
 * a row. The rows have no foreign keys, because they must exist until the object is deleted, and as long as an upload
 * under their grant may come. Writes go to `files` and, through quota.ts, to `storageUsage`.
 */
import type { Selectable } from 'kysely';
import { deletingWorkspaces } from '#api/db/deleting.ts';
import type { Database, FileTable, Timestamp } from '#api/db/schema.ts';
import type { FileLocation } from './key.ts';
import { keyOf } from './key.ts';
import { QuotaExceeded, releaseBytes, reserveBytes, type StorageQuota } from './quota.ts';

export type File = Selectable<FileTable>;

/** @throws QuotaExceeded if the granted size does not fit */
export async function insertFile(
  db: Database,
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

/** Finds the grant of a key whose file was not deleted, nor its workspace. Only such files are served. */
export async function findGrant(
  db: Database,
  key: string,
): Promise<Pick<File, 'createdAt' | 'storedAt'> | null> {
  const row = await db
    .selectFrom('files')
    .select(['createdAt', 'storedAt'])
    .where('key', '=', key)
    .where('removedAt', 'is', null)
    .where('workspaceId', 'not in', deletingWorkspaces(db))
    .executeTakeFirst();
  return row ?? null;
}

/** `gone`: the file was deleted. `full`: it does not fit into the quota. In both cases the object must be deleted. */
type StoredOutcome = 'stored' | 'gone' | 'full';

/** Records that a file was stored. Call it when the object exists. */
export async function markStored(
  db: Database,
  quota: StorageQuota,
  key: string,
  size: number,
  now: Timestamp,
): Promise<StoredOutcome> {
  try {
    return await db.transaction().execute(async (trx): Promise<StoredOutcome> => {
      // Write first, so that no other transaction can delete the file or store another version meanwhile.
      const row = await trx
        .updateTable('files')
        .set({ size, storedAt: now })
        .where('key', '=', key)
        .where('removedAt', 'is', null)
        .where('workspaceId', 'not in', deletingWorkspaces(trx))
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
 * Marks a file as deleted, before its object is deleted.
 *
 * @param onlyUnclaimed marks the file only if no answer or survey names it
 * @returns false if it was not marked, or there is no such row
 */
export async function markRemoved(
  db: Database,
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
 * Releases the bytes of a deleted file. Call it when the object was deleted. It also deletes the row, unless an upload
 * under the grant may still be running.
 *
 * @param before rows of grants before this time are deleted
 */
export async function settleRemoved(db: Database, key: string, before: Timestamp): Promise<void> {
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

/** Releases the bytes of a grant that was probably not used. */
export async function releaseGrant(db: Database, key: string): Promise<void> {
  await db.transaction().execute((trx) => releaseCounted(trx, key));
}

async function releaseCounted(trx: Database, key: string): Promise<void> {
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
