/**
 * Fills every table with rows made from its columns alone: values that are easily mistaken for others, valid foreign
 * keys, and unique values. It bypasses the API, which would refuse most of them.
 */
import SqliteDatabase from 'better-sqlite3';

/** PostgreSQL can store all of these values, and none is too long for an index. */
const TEXTS: readonly string[] = [
  '',
  ' ',
  'null',
  '0',
  'it\'s "quoted" \\ `so` $1 ? :name',
  'line\r\nline\ttab\u0001\u007f',
  'ä a\u0308 \u00a0\u200b\ufeff\u2028',
  '😀 𝔘𝔫𝔦 \u{10ffff}',
  'مرحبا שלום 你好',
  '{"a":[1,2.50,1e21,null,true,"\\u0000"],"a":1}',
  '1e309',
  '2026-01-01T00:00:00.000Z',
];
const LONG = JSON.stringify({ text: 'A long answer. 😀 '.repeat(8_000) });
const NUMBERS = [0, 1, -1, 2 ** 31 - 1] as const;
const LARGE = [0, 1, 2 ** 31, 2 ** 40 + 1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER] as const;
/** Triggers fill this table. */
const COUNTS = 'responseCounts';
/** These columns count bytes, which may need more than 32 bits. */
const BYTES = /bytes|^size$/i;

interface Column {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly pk: number;
}

interface Reference {
  readonly table: string;
  readonly from: string;
  readonly to: string | null;
}

/**
 * @param path a database at the newest schema, without rows of its own
 * @param rowsOf how many rows of a table
 * @returns how many rows it has afterwards
 */
export function fillOddly(
  path: string,
  tables: readonly string[],
  rowsOf: (table: string) => number,
): number {
  const sqlite = new SqliteDatabase(path);
  sqlite.pragma('foreign_keys = ON');
  sqlite.transaction(() => {
    for (const table of tables) if (table !== COUNTS) fillTable(sqlite, table, rowsOf(table));
  })();
  // Triggers add some, so the rows are counted at the end.
  const countRows = (table: string) =>
    Number(sqlite.prepare(`select count(*) from "${table}"`).pluck().get());
  const sum = tables.reduce((rows, table) => rows + countRows(table), 0);
  sqlite.close();
  return sum;
}

function fillTable(sqlite: SqliteDatabase.Database, table: string, count: number): void {
  const columns = sqlite.pragma(`table_info("${table}")`) as Column[];
  const references = sqlite.pragma(`foreign_key_list("${table}")`) as Reference[];
  const indexes = sqlite.pragma(`index_list("${table}")`) as { name: string; unique: number }[];
  const inIndexes = (isUnique: boolean): ReadonlySet<string> =>
    new Set(
      indexes
        .filter(({ unique }) => !isUnique || unique === 1)
        .flatMap(({ name }) => sqlite.pragma(`index_info("${name}")`) as { name: string }[])
        .map(({ name }) => name),
    );
  const [unique, indexed] = [inIndexes(true), inIndexes(false)];
  const parents = new Map(
    references.map(({ table: parent, from, to }) => [
      from,
      sqlite
        .prepare(`select "${to ?? 'id'}" from "${parent}" order by 1`)
        .pluck()
        .all() as readonly unknown[],
    ]),
  );
  const names = columns.map(({ name }) => `"${name}"`).join(', ');
  const insert = sqlite.prepare(
    `insert into "${table}" (${names}) values (${columns.map(() => '?').join(', ')})`,
  );
  // If all parts of a key refer to other rows, there are no more rows than pairs.
  const keyParts = columns
    .filter(({ pk }) => pk > 0)
    .map(({ name }) => parents.get(name)?.length ?? Infinity);
  const rows = Math.min(count, ...(keyParts.includes(Infinity) ? [] : [Math.min(...keyParts)]));
  for (let at = 0; at < rows; at++) {
    insert.run(
      ...columns.map((column, place) => {
        const parent = parents.get(column.name);
        const isNull = column.notnull === 0 && column.pk === 0 && (at + place) % 3 === 0;
        if (isNull) return null;
        const isUnique = unique.has(column.name) || column.pk > 0;
        // Beyond the last row, a unique reference stays null.
        if (parent !== undefined)
          return parent[column.notnull === 0 && isUnique ? at : at % parent.length] ?? null;
        return cellOf(column, { at, place, isUnique, isIndexed: indexed.has(column.name) });
      }),
    );
  }
}

interface Cell {
  readonly at: number;
  readonly place: number;
  readonly isUnique: boolean;
  readonly isIndexed: boolean;
}

function cellOf({ name, type }: Column, { at, place, isUnique, isIndexed }: Cell): string | number {
  if (/int/i.test(type)) {
    if (isUnique) return at;
    const numbers = BYTES.test(name) ? LARGE : NUMBERS;
    return numbers[(at + place) % numbers.length] ?? 0;
  }
  if (!isIndexed && (at + place) % 997 === 5) return LONG;
  const text = TEXTS[(at + place) % TEXTS.length] ?? '';
  return isUnique ? `${text}${at.toString(36)}` : text;
}
