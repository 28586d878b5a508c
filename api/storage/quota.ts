/**
 * Limits the bytes of the files of a workspace, and of all workspaces. A file counts from its grant, first with the
 * maximum size of the grant, then with its own. So parallel uploads cannot exceed the quota. The sums are in
 * `storageUsage`, and change in the transaction of their row.
 */
import type { Database } from '#api/db/schema.ts';

export const quotaVariables = [
  {
    name: 'STORAGE_TOTAL_MIB',
    default: '102400',
    meaning:
      'maximum size of all uploaded files in MiB, up to 999999999, and ten times that of the files of one workspace; 0: no limits',
  },
] as const;

const MIB_MAX = 999_999_999;
/** One workspace that fills its share leaves most of the disk to the others. */
const WORKSPACE_SHARE = 1 / 10;
const MEBIBYTE = 1_048_576;

/** @param integer reads one variable as a whole number within bounds */
export function readStorageQuota(
  integer: (name: (typeof quotaVariables)[number]['name'], min: number, max: number) => number,
): StorageQuota {
  const totalBytesMax = integer('STORAGE_TOTAL_MIB', 0, MIB_MAX) * MEBIBYTE;
  if (totalBytesMax === 0) return { workspaceBytesMax: null, totalBytesMax: null };
  return { workspaceBytesMax: Math.floor(totalBytesMax * WORKSPACE_SHARE), totalBytesMax };
}

export interface StorageQuota {
  /** Maximum number of bytes; null for no limit. */
  readonly workspaceBytesMax: number | null;
  readonly totalBytesMax: number | null;
}

export type QuotaScope = 'workspace' | 'total';

/** The bytes do not fit. Thrown in a transaction, which it ends. */
export class QuotaExceeded extends Error {
  readonly scope: QuotaScope;

  constructor(scope: QuotaScope) {
    super(`The storage quota (${scope}) is used up`);
    this.name = 'QuotaExceeded';
    this.scope = scope;
  }
}

/** Key of the row for the sum of all workspaces. No workspace has an empty id. */
const TOTAL = '';

export async function reserveBytes(
  trx: Database,
  { workspaceBytesMax, totalBytesMax }: StorageQuota,
  workspaceId: string,
  bytes: number,
): Promise<void> {
  if (!(await add(trx, workspaceId, bytes, workspaceBytesMax))) throw new QuotaExceeded('workspace');
  if (!(await add(trx, TOTAL, bytes, totalBytesMax))) throw new QuotaExceeded('total');
}

export async function releaseBytes(trx: Database, workspaceId: string, bytes: number): Promise<void> {
  if (bytes === 0) return;
  for (const id of [workspaceId, TOTAL]) {
    await trx
      .updateTable('storageUsage')
      .set((row) => ({ bytes: row('bytes', '-', bytes) }))
      .where('workspaceId', '=', id)
      .execute();
  }
  // Deletes the rows of workspaces that were deleted.
  await trx
    .deleteFrom('storageUsage')
    .where('workspaceId', '=', workspaceId)
    .where('bytes', '<=', 0)
    .execute();
}

export async function usedBytes(db: Database): Promise<number> {
  const row = await db
    .selectFrom('storageUsage')
    .select('bytes')
    .where('workspaceId', '=', TOTAL)
    .executeTakeFirst();
  return row?.bytes ?? 0;
}

/** Checks and adds in one statement, so that no other change comes between. @returns false if it does not fit */
async function add(
  trx: Database,
  workspaceId: string,
  bytes: number,
  bytesMax: number | null,
): Promise<boolean> {
  await trx
    .insertInto('storageUsage')
    .values({ workspaceId, bytes: 0 })
    // Writes even if the row exists, so that it is not deleted before the next statement.
    .onConflict((conflict) =>
      conflict.column('workspaceId').doUpdateSet((row) => ({ bytes: row.ref('storageUsage.bytes') })),
    )
    .execute();
  let update = trx
    .updateTable('storageUsage')
    .set((row) => ({ bytes: row('bytes', '+', bytes) }))
    .where('workspaceId', '=', workspaceId);
  if (bytesMax !== null) update = update.where('bytes', '<=', bytesMax - bytes);
  const { numUpdatedRows } = await update.executeTakeFirst();
  return numUpdatedRows > 0n;
}
