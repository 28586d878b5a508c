/**
 * Whether two tables hold the same rows: how many there are, and the sum of their digests, which does not depend on the
 * order in which a database gives them away. A value is the same on SQLite and on PostgreSQL when its text is.
 */
import { hash } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { Database } from '../schema.ts';
import { type Readable, type Row, readSlices, type Value } from './slices.ts';

export interface TableDigest {
  readonly rows: number;
  /** 32 hex digits: the sum of 128 bits of each row's SHA-256. */
  readonly digest: string;
}

const DIGITS = 32;

/** @param onRows is told how many rows were read since it was told last */
export async function digestOf(
  db: Kysely<Database>,
  table: Readable,
  onRows: (count: number) => void = () => undefined,
): Promise<TableDigest> {
  let rows = 0;
  let sum = 0n;
  for await (const slice of readSlices(db, table)) {
    for (const row of slice.rows) sum += digestOfRow(table.columns, row);
    rows += slice.rows.length;
    onRows(slice.rows.length);
  }
  return {
    rows,
    digest: BigInt.asUintN(DIGITS * 4, sum)
      .toString(16)
      .padStart(DIGITS, '0'),
  };
}

export function isSame(one: TableDigest, other: TableDigest): boolean {
  return one.rows === other.rows && one.digest === other.digest;
}

/** 128 bits. */
export function digestOfRow(columns: readonly string[], row: Row): bigint {
  const text = columns.map((column) => canonical(row[column] ?? null)).join('');
  return BigInt(`0x${hash('sha256', text).slice(0, DIGITS)}`);
}

/** No two rows have the same text: the length of a value stands before it. */
function canonical(value: Value): string {
  if (value === null) return 'n';
  if (typeof value === 'string') return `s${value.length}:${value}`;
  return `i${value};`;
}
