/**
 * Describes tables once, for the database and for TypeScript: `createTables` makes them with Kysely's schema builder, and
 * `TablesOf` is their type.
 *
 * Timestamps (see timestamps.ts) and JSON are text and booleans are 0 or 1, so that SQLite and PostgreSQL store the same
 * bytes. Only stores see this encoding.
 */
import {
  type ColumnDefinitionBuilder,
  type CreateTableBuilder,
  type Generated,
  type Kysely,
  PostgresAdapter,
  sql,
} from 'kysely';

export type Flag = 0 | 1;

export interface Column<T> {
  readonly type: 'text' | 'integer';
  readonly define: (column: ColumnDefinitionBuilder) => ColumnDefinitionBuilder;
  /** Has no value. Its type is the type of the column. */
  readonly is?: T | undefined;
}

const column = <T>(type: Column<T>['type'], define: Column<T>['define'] = (plain) => plain): Column<T> => ({
  type,
  define,
});

export const key = column<string>('text', (text) => text.primaryKey());
export const text = column<string>('text', (text) => text.notNull());
export const optionalText = column<string | null>('text');
export const uniqueText = column<string>('text', (text) => text.notNull().unique());
export const optionalUniqueText = column<string | null>('text', (text) => text.unique());
export const number = column<number>('integer', (integer) => integer.notNull());
export const optionalNumber = column<number | null>('integer');
export const numberFromZero = column<Generated<number>>('integer', (integer) =>
  integer.notNull().defaultTo(0),
);
export const flag = column<Flag>('integer', (integer) => integer.notNull());
export const flagFromZero = column<Generated<Flag>>('integer', (integer) => integer.notNull().defaultTo(0));

/** A text that is one of few. */
export const oneOf = <T extends string>() => column<T>('text', (text) => text.notNull());
export const optionalOneOf = <T extends string>() => column<T | null>('text');

/** Makes a column refer to a row of another table. @param deleted what becomes of this row when that one is deleted */
export function referring<T>(
  { type, define }: Column<T>,
  table: string,
  deleted: 'cascade' | 'set null',
): Column<T> {
  return { type, define: (plain) => define(plain).references(`${table}.id`).onDelete(deleted) };
}

/** The id of the row that owns this one. */
export const ownedBy = (table: string): Column<string> => referring(text, table, 'cascade');

/** The columns of most tables. */
export const row = { id: key, createdAt: text, updatedAt: text };

/** Queries are written once. PostgreSQL runs several writers at the same time, and has types of its own for columns. */
export function isPostgres<Tables>(db: Kysely<Tables>): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

type TableColumns = Readonly<Record<string, Readonly<Record<string, Column<unknown>>>>>;

export type TablesOf<Tables> = {
  [Name in keyof Tables]: {
    -readonly [Part in keyof Tables[Name]]: Tables[Name][Part] extends Column<infer T> ? T : never;
  };
};

interface Index {
  /** Without the name of the table; null for the name of a unique index. */
  readonly name: string | null;
  readonly columns: readonly string[];
  /** The rows of the index have a value in this column, or have none. */
  readonly only?: readonly [column: string, operator: 'is' | 'is not'];
}

/** Indexes by table. */
export type Indexes = Readonly<Record<string, readonly Index[]>>;

/** @param columns the column of that name, unless given */
export const index = (name: string, ...columns: readonly string[]): Index => ({
  name,
  columns: columns.length === 0 ? [name] : columns,
});

/** No two rows have the same values in these columns, unless one of them is null. */
export const unique = (...columns: readonly string[]): Index => ({ name: null, columns });

/** Makes an index of only those rows that have a value in the column. */
export const having = (column: string, all: Index): Index => ({ ...all, only: [column, 'is not'] });

/** Makes an index of only those rows that have none. */
export const without = (column: string, all: Index): Index => ({ ...all, only: [column, 'is'] });

/** Makes the tables, in the order of their list: each refers only to earlier ones. */
export async function createTables(
  db: Kysely<unknown>,
  tables: TableColumns,
  indexes: Indexes,
): Promise<void> {
  // In both databases, text is sorted by bytes, and integers have 64 bits.
  const types = isPostgres(db)
    ? ({ text: sql`text collate "C"`, integer: 'bigint' } as const)
    : ({ text: 'text', integer: 'integer' } as const);
  for (const [table, columns] of Object.entries(tables)) {
    let creation: CreateTableBuilder<string, string> = db.schema.createTable(table);
    for (const [column, { type, define }] of Object.entries(columns))
      creation = creation.addColumn(column, types[type], define);
    await creation.execute();
    for (const { name, columns, only } of indexes[table] ?? []) {
      const fullName = name === null ? uniqueName(table, columns) : `${table}_${name}`;
      let creation = db.schema
        .createIndex(fullName)
        .on(table)
        .columns([...columns]);
      if (name === null) creation = creation.unique();
      if (only !== undefined) creation = creation.where(sql.ref(only[0]), only[1], null);
      await creation.execute();
    }
  }
}

/** The name of a unique index, which is also the one that PostgreSQL gives to that of a single column. */
export function uniqueName(table: string, columns: readonly string[]): string {
  return `${table}_${columns.join('_')}_key`;
}
