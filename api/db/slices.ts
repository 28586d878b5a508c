/** Deletes many rows in small steps, so that neither requests nor other writers wait long. */
import { setImmediate } from 'node:timers/promises';
import type { SelectQueryBuilder } from 'kysely';
import type { Database, Tables } from './schema.ts';

/** @param ids selects the ids of the rows @returns their number */
export async function deleteSome(
  db: Database,
  table: keyof Tables,
  ids: SelectQueryBuilder<Tables, keyof Tables, { id: string }>,
): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom<keyof Tables>(table)
    .where('id', 'in', ids)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Rows of one statement. It takes about 10 ms with a million responses. */
export const SLICE_ROWS = 200;

/**
 * @param deleteSlice deletes at most `rowsMax` rows and returns how many @returns when a slice is not full, or when
 * stopping
 */
export async function inSlices(
  deleteSlice: (rowsMax: number) => Promise<number>,
  isStopping: () => boolean = () => false,
): Promise<void> {
  while (!isStopping() && (await deleteSlice(SLICE_ROWS)) === SLICE_ROWS) await setImmediate();
}
