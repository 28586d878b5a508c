/** Reads a table in slices, with memory that does not grow with the table. */
import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../schema.ts';

export type Value = string | number | bigint | null;
export type Row = Readonly<Record<string, Value>>;
/** Values of the primary key, in its order. */
export type Key = readonly (string | number | bigint)[];

export interface Readable {
  readonly name: string;
  readonly columns: readonly string[];
  readonly texts: readonly string[];
  readonly key: readonly string[];
}

export interface Slice {
  /** Rows of the slice; at least one. */
  readonly rows: readonly Row[];
  readonly lastKey: Key;
}

const SLICE_ROWS_MAX = 1_000;
/** Maximum size of a slice, unless a single row is larger. */
const SLICE_BYTES_MAX = 4_194_304;

/** @param after key of the row before the first slice; null at the start of the table */
export async function* readSlices(
  db: Database,
  table: Readable,
  after: Key | null = null,
): AsyncGenerator<Slice> {
  for (let last = after; ; ) {
    const end = await endOfSlice(db, table, last);
    if (end === null) return;
    const { rows } = await sql<Row>`
      select ${columns(table.columns)} from ${sql.table(table.name)}
      where ${behind(table, last)} and ${tuple(table)} <= ${values(end)}
      order by ${columns(table.key)}`.execute(db);
    yield { rows, lastKey: end };
    last = end;
  }
}

/** Uses the lengths of texts, without reading them. @returns key of the last row that fits into a slice */
async function endOfSlice(db: Database, table: Readable, after: Key | null): Promise<Key | null> {
  const lengths = table.texts.map((column) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`);
  const bytes = lengths.length === 0 ? sql`0` : sql.join(lengths, sql` + `);
  const { rows } = await sql<Row>`
    select ${columns(table.key)}, ${bytes} as "sliceBytes" from ${sql.table(table.name)}
    where ${behind(table, after)}
    order by ${columns(table.key)} limit ${SLICE_ROWS_MAX}`.execute(db);
  let sum = 0;
  let end: Row | undefined;
  for (const row of rows) {
    sum += Number(row.sliceBytes);
    if (end !== undefined && sum > SLICE_BYTES_MAX) break;
    end = row;
  }
  return end === undefined ? null : keyOf(table, end);
}

export function keyOf({ name, key }: Pick<Readable, 'name' | 'key'>, row: Row): Key {
  return key.map((column) => {
    const value = row[column];
    if (value === null || value === undefined) throw new Error(`A row of ${name} has no ${column}`);
    return value;
  });
}

function behind(table: Readable, after: Key | null): RawBuilder<unknown> {
  return after === null ? sql`1 = 1` : sql`${tuple(table)} > ${values(after)}`;
}

function tuple({ key }: Readable): RawBuilder<unknown> {
  return sql`(${columns(key)})`;
}

function values(key: Key): RawBuilder<unknown> {
  return sql`(${sql.join(key)})`;
}

function columns(names: readonly string[]): RawBuilder<unknown> {
  return sql.join(names.map((name) => sql.ref(name)));
}
