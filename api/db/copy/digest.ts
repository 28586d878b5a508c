/**
 * Computes digests to compare tables: the number of rows and the sum of their digests, which does not depend on the
 * order of rows. Values are compared as text, which is equal on SQLite and PostgreSQL.
 */
import { hash } from 'node:crypto';
import type { Database } from '../schema.ts';
import { type Readable, type Row, readSlices, type Value } from './slices.ts';

export interface TableDigest {
  readonly rows: number;
  /** 32 hexadecimal digits: sum of the first 128 bits of each row's SHA-256. */
  readonly digest: string;
}

const DIGITS = 32;

export async function digestOf(
  db: Database,
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

export function digestOfRow(columns: readonly string[], row: Row): bigint {
  const text = columns.map((column) => canonical(row[column] ?? null)).join('');
  return BigInt(`0x${hash('sha256', text).slice(0, DIGITS)}`);
}

/**
 * Writes a value as text for a digest. Different rows give different texts, because each text is prefixed with its
 * length.
 */
function canonical(value: Value): string {
  if (value === null) return 'n';
  if (typeof value === 'string') return `s${value.length}:${value}`;
  return `i${value};`;
}
