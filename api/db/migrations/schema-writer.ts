/**
 * Describes tables once, for the database and for TypeScript: `tables` lists them, `createTables` makes them with Kysely's
 * schema builder, and `TablesOf` is their type.
 *
 * Timestamps (see timestamps.ts) and JSON are text and booleans are 0 or 1, so that SQLite and PostgreSQL store the same
 * bytes. Only stores see this encoding.
 */
import {
  type ColumnDefinitionBuilder,
  type CreateTableBuilder,
  type Generated,
  type SchemaModule,
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

type Columns = Readonly<Record<string, Column<unknown>>>;

interface Index {
  readonly columns: readonly string[];
  readonly isUnique?: true;
  /** Conditions of the rows of the index; without them, it has all rows. */
  readonly only?: readonly (readonly [column: string, operator: 'is' | 'is not' | '=', value: null | 1])[];
}

export interface Table<C extends Columns> {
  readonly columns: C;
  /** Columns of the primary key, unless a single column is it. */
  readonly primary?: readonly (keyof C & string)[];
  /** Lists of columns in which no two rows are the same. */
  readonly unique?: readonly (readonly (keyof C & string)[])[];
  readonly indexes?: Readonly<Record<string, Index>>;
}

type AnyTable = Omit<Table<Columns>, 'primary' | 'unique'> & {
  readonly primary?: readonly string[];
  readonly unique?: readonly (readonly string[])[];
};

/** @param indexes by name, without the name of the table */
export function table<C extends Columns>(columns: C, more: Omit<Table<C>, 'columns'> = {}): Table<C> {
  return { columns, ...more };
}

export type TablesOf<Tables> = {
  [Name in keyof Tables]: Tables[Name] extends Table<infer C>
    ? { -readonly [Name in keyof C]: C[Name] extends Column<infer T> ? T : never }
    : never;
};

/** A migration writes tables and rows with this. */
export interface SchemaWriter {
  readonly schema: SchemaModule;
  readonly isPostgres: boolean;
  /** Runs a statement for which Kysely has no builder, such as that of a trigger. */
  readonly run: (statement: string) => Promise<unknown>;
}

/** Makes the tables, in the order of their list: each refers only to earlier ones. */
export async function createTables(
  { schema, isPostgres }: SchemaWriter,
  tables: Readonly<Record<string, AnyTable>>,
): Promise<void> {
  // In both databases, text is sorted by bytes, and integers have 64 bits.
  const types = isPostgres
    ? ({ text: sql`text collate "C"`, integer: 'bigint' } as const)
    : ({ text: 'text', integer: 'integer' } as const);
  for (const [name, { columns, primary, unique = [], indexes = {} }] of Object.entries(tables)) {
    let creation: CreateTableBuilder<string, string> = schema.createTable(name);
    for (const [column, { type, define }] of Object.entries(columns))
      creation = creation.addColumn(column, types[type], define);
    if (primary !== undefined) creation = creation.addPrimaryKeyConstraint(`${name}_pkey`, [...primary]);
    for (const list of unique) creation = creation.addUniqueConstraint(uniqueName(name, list), [...list]);
    await creation.execute();
    for (const [index, { columns, isUnique, only = [] }] of Object.entries(indexes)) {
      let creation = schema
        .createIndex(isUnique ? uniqueName(name, columns) : `${name}_${index}`)
        .on(name)
        .columns([...columns]);
      if (isUnique) creation = creation.unique();
      for (const [column, operator, value] of only)
        creation = creation.where(sql.ref(column), operator, value);
      await creation.execute();
    }
  }
}

/** The name of a unique index, which is also the one that PostgreSQL gives to that of a single column. */
export function uniqueName(table: string, columns: readonly string[]): string {
  return `${table}_${columns.join('_')}_key`;
}
