/**
 * Rows of uploaded files. Every granted key has a row, which is written before the grant is returned. So every object has
 * a row. The rows have no foreign keys, because they must exist until the object is deleted, and as long as an upload
 * under their grant may come.
 */
import { type Selectable, sql } from 'kysely';
import { deletingWorkspaces } from '#api/db/deleting.ts';
import { lockName } from '#api/db/locks.ts';
import type { Database, FileTable, Timestamp } from '#api/db/schema.ts';
import type { FileLocation } from './key.ts';
import { keyOf } from './key.ts';
import { QuotaExceeded, refuseFull, type StorageQuota } from './quota.ts';

export type File = Selectable<FileTable>;

/** Writers that count more bytes take turns, so that each sees what the others count. */
const QUOTA = 'storage quota';

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
    await lockName(trx, QUOTA);
    await trx
      .insertInto('files')
      .values({ key: keyOf(location), workspaceId, access, surveyId, createdAt, countedBytes: bytesMax })
      .execute();
    await refuseFull(trx, quota, workspaceId);
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
      const row = await trx
        .updateTable('files')
        .set({ size, storedAt: now, countedBytes: size })
        .where('key', '=', key)
        .where('removedAt', 'is', null)
        .where('workspaceId', 'not in', deletingWorkspaces(trx))
        .returning('workspaceId')
        .executeTakeFirst();
      if (row === undefined) return 'gone';
      await lockName(trx, QUOTA);
      await refuseFull(trx, quota, row.workspaceId);
      return 'stored';
    });
  } catch (error) {
    if (error instanceof QuotaExceeded) return 'full';
    throw error;
  }
}

export type Owner =
  | { readonly responseId: string }
  | { readonly surveyId: string }
  | { readonly workspaceId: string };

/** Marks the files of an owner as deleted. Call it in the transaction that deletes the owner. */
export async function markFilesOf(trx: Database, owner: Owner, now: Timestamp): Promise<void> {
  const [[column, id] = ['workspaceId', '']] = Object.entries(owner);
  await trx
    .updateTable('files')
    .set({ removedAt: now })
    .where(sql.ref(column), '=', id)
    .where('removedAt', 'is', null)
    .execute();
}

/**
 * Marks a file as deleted, before its object is deleted.
 *
 * @param onlyUnclaimed marks the file only if no answer or survey names it @returns whether it is marked
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
 * Forgets a deleted file. Call it when the object was deleted. The row stays, and counts nothing, while an upload under
 * the grant may still be running.
 *
 * @param before rows of grants before this time are deleted
 */
export async function forgetRemoved(db: Database, key: string, before: Timestamp): Promise<void> {
  const { numDeletedRows } = await db
    .deleteFrom('files')
    .where('key', '=', key)
    .where('removedAt', 'is not', null)
    .where('createdAt', '<', before)
    .executeTakeFirst();
  if (numDeletedRows === 0n) await releaseBytes(db, key);
}

/** Counts a file no more: it was deleted, or its grant was probably not used. */
export async function releaseBytes(db: Database, key: string): Promise<void> {
  await db.updateTable('files').set({ countedBytes: 0 }).where('key', '=', key).execute();
}
