/**
 * How many bytes of files a workspace may have, and all of them together. A file counts from its grant on, with the largest
 * size that was granted, and with its own size once it is there; so two uploads at once cannot pass the quota together.
 * The sums stand in `storageUsage` and change in the transaction of the row they are about.
 */
import type { Kysely } from 'kysely';
import type { Database } from '#api/db/schema.ts';

export const quotaVariables = [
  {
    name: 'STORAGE_WORKSPACE_MIB',
    default: '10240',
    meaning: 'maximum size of all uploaded files of one workspace in MiB, up to 999999999; 0: no limit',
  },
  {
    name: 'STORAGE_TOTAL_MIB',
    default: '102400',
    meaning: 'maximum size of all uploaded files in MiB, up to 999999999; 0: no limit',
  },
] as const;

const MIB_MAX = 999_999_999;
const MEBIBYTE = 1_048_576;

/** @param integer reads one variable as a whole number within bounds */
export function readStorageQuota(
  integer: (name: (typeof quotaVariables)[number]['name'], min: number, max: number) => number,
): StorageQuota {
  const bytesMax = (mebibytes: number): number | null => (mebibytes === 0 ? null : mebibytes * MEBIBYTE);
  return {
    workspaceBytesMax: bytesMax(integer('STORAGE_WORKSPACE_MIB', 0, MIB_MAX)),
    totalBytesMax: bytesMax(integer('STORAGE_TOTAL_MIB', 0, MIB_MAX)),
  };
}

export interface StorageQuota {
  /** Bytes; null: no bound. */
  readonly workspaceBytesMax: number | null;
  readonly totalBytesMax: number | null;
}

export type QuotaScope = 'workspace' | 'total';

/** There is no room for so many bytes; thrown inside of a transaction, which it ends. */
export class QuotaExceeded extends Error {
  readonly scope: QuotaScope;

  constructor(scope: QuotaScope) {
    super(`The storage quota (${scope}) is used up`);
    this.name = 'QuotaExceeded';
    this.scope = scope;
  }
}

/** The row of all workspaces together; no id is empty. */
const TOTAL = '';

/** @throws QuotaExceeded */
export async function reserveBytes(
  trx: Kysely<Database>,
  { workspaceBytesMax, totalBytesMax }: StorageQuota,
  workspaceId: string,
  bytes: number,
): Promise<void> {
  if (!(await add(trx, workspaceId, bytes, workspaceBytesMax))) throw new QuotaExceeded('workspace');
  if (!(await add(trx, TOTAL, bytes, totalBytesMax))) throw new QuotaExceeded('total');
}

export async function releaseBytes(trx: Kysely<Database>, workspaceId: string, bytes: number): Promise<void> {
  if (bytes === 0) return;
  for (const id of [workspaceId, TOTAL]) {
    await trx
      .updateTable('storageUsage')
      .set((row) => ({ bytes: row('bytes', '-', bytes) }))
      .where('workspaceId', '=', id)
      .execute();
  }
  // Workspaces that have gone leave nothing behind.
  await trx
    .deleteFrom('storageUsage')
    .where('workspaceId', '=', workspaceId)
    .where('bytes', '<=', 0)
    .execute();
}

export async function usedBytes(db: Kysely<Database>): Promise<number> {
  const row = await db
    .selectFrom('storageUsage')
    .select('bytes')
    .where('workspaceId', '=', TOTAL)
    .executeTakeFirst();
  return row?.bytes ?? 0;
}

/** One statement that checks and adds, so that nobody comes in between. @returns whether there was room */
async function add(
  trx: Kysely<Database>,
  workspaceId: string,
  bytes: number,
  bytesMax: number | null,
): Promise<boolean> {
  await trx
    .insertInto('storageUsage')
    .values({ workspaceId, bytes: 0 })
    // A write also where the row is there: it must not go before the next statement.
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
