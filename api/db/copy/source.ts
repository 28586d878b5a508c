/** Reads a whole SQLite file, table by table, with memory that does not grow with the tables. */
import type { SqliteFile } from '../sqlite-snapshot.ts';

type Value = string | number | bigint | null;
export type Row = Readonly<Record<string, Value>>;

export interface SourceTable {
  readonly name: string;
  readonly columns: readonly string[];
  readonly key: readonly string[];
}

interface Column {
  readonly name: string;
  /** Position in the primary key, from 1; 0 if it is not part of it. */
  readonly pk: bigint;
}

/** @returns the tables in an order in which each follows all tables that it refers to */
export function readTables(sqlite: SqliteFile): readonly SourceTable[] {
  const names = sqlite
    .prepare<[], string>(
      `select "name" from sqlite_master where "type" = 'table' and "name" not like 'sqlite%' order by "name"`,
    )
    .pluck()
    .all();
  const waiting = new Map(names.map((name) => [name, readTable(sqlite, name)]));
  const placed: SourceTable[] = [];
  while (waiting.size > 0) {
    const next = [...waiting.values()].filter(({ refersTo }) => !refersTo.some((name) => waiting.has(name)));
    if (next.length === 0)
      throw new Error('Some tables refer to each other in a circle: none can be copied first');
    for (const { table } of next) {
      placed.push(table);
      waiting.delete(table.name);
    }
  }
  return placed;
}

function readTable(sqlite: SqliteFile, name: string) {
  const columns = sqlite.prepare<[string], Column>('select "name", "pk" from pragma_table_info(?)').all(name);
  const refersTo = sqlite
    .prepare<[string, string], string>(
      'select distinct "table" from pragma_foreign_key_list(?) where "table" <> ?',
    )
    .pluck()
    .all(name, name);
  const key = columns.filter(({ pk }) => pk > 0n).sort((a, b) => Number(a.pk - b.pk));
  const table: SourceTable = {
    name,
    columns: columns.map((column) => column.name),
    key: key.map((column) => column.name),
  };
  return { table, refersTo };
}

export function countRows(sqlite: SqliteFile, { name }: SourceTable): number {
  return Number(sqlite.prepare<[], bigint>(`select count(*) from "${name}"`).pluck().get());
}

/** Powers of two, so that few different statements are prepared for any number of rows. */
const ROWS_MAX = 64;
/** Maximum size of a batch in characters, unless a single row is larger. */
const CHARACTERS_MAX = 4_194_304;

export function* readBatches(sqlite: SqliteFile, { name, columns }: SourceTable): Generator<readonly Row[]> {
  const list = columns.map((column) => `"${column}"`).join(', ');
  let batch: Row[] = [];
  let characters = 0;
  for (const row of sqlite.prepare<[], Row>(`select ${list} from "${name}"`).iterate()) {
    const size = sizeOf(row);
    if (batch.length === ROWS_MAX || (batch.length > 0 && characters + size > CHARACTERS_MAX)) {
      yield batch;
      batch = [];
      characters = 0;
    }
    batch.push(row);
    characters += size;
  }
  if (batch.length > 0) yield batch;
}

function sizeOf(row: Row): number {
  let sum = 0;
  for (const value of Object.values(row)) if (typeof value === 'string') sum += value.length;
  return sum;
}
