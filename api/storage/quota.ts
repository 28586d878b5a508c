/**
 * Limits the bytes of the files of a workspace, and of all workspaces. A file counts from its grant, first with the
 * maximum size of the grant, then with its own. So parallel uploads cannot exceed the quota.
 */
import type { Database } from '#api/db/schema.ts';

export const quotaVariables = [
  {
    name: 'STORAGE_TOTAL_MIB',
    default: '102400',
    meaning: 'maximum size of all uploaded files in MiB, a tenth of it for one workspace; 0: no limits',
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

/** Call it after the write that counts more bytes, in its transaction. @throws QuotaExceeded */
export async function refuseFull(
  trx: Database,
  { workspaceBytesMax, totalBytesMax }: StorageQuota,
  workspaceId: string,
): Promise<void> {
  if (totalBytesMax === null || workspaceBytesMax === null) return;
  if ((await usedBytes(trx, workspaceId)) > workspaceBytesMax) throw new QuotaExceeded('workspace');
  if ((await usedBytes(trx)) > totalBytesMax) throw new QuotaExceeded('total');
}

/** Sums what is counted, by an index. @param workspaceId without it, of all workspaces */
export async function usedBytes(db: Database, workspaceId?: string): Promise<number> {
  const all = db.selectFrom('files').select(({ fn }) => fn.sum<number | null>('countedBytes').as('bytes'));
  const { bytes } = await (workspaceId === undefined
    ? all
    : all.where('workspaceId', '=', workspaceId)
  ).executeTakeFirstOrThrow();
  return bytes ?? 0;
}
