/**
 * What migrations write the schema with: Kysely's schema builder, the column types of both databases, and the names that
 * PostgreSQL gives to constraints by itself.
 */
import {
  type ColumnDataType,
  type ColumnDefinitionBuilder,
  type CreateTableBuilder,
  type Expression,
  type SchemaModule,
  sql,
} from 'kysely';

export interface Column {
  readonly type: 'text' | 'integer';
  readonly define: (column: ColumnDefinitionBuilder) => ColumnDefinitionBuilder;
}

const column = (type: Column['type'], define: Column['define'] = (plain) => plain): Column => ({
  type,
  define,
});

export const key = column('text', (text) => text.primaryKey());
export const text = column('text', (text) => text.notNull());
export const optionalText = column('text');
export const uniqueText = column('text', (text) => text.notNull().unique());
export const optionalUniqueText = column('text', (text) => text.unique());
export const number = column('integer', (integer) => integer.notNull());
export const optionalNumber = column('integer');
export const numberFromZero = column('integer', (integer) => integer.notNull().defaultTo(0));
export const runningNumber = column('integer', (integer) => integer.primaryKey());

/** Makes a column refer to a row of another table. @param deleted what becomes of this row when that one is deleted */
export function referring({ type, define }: Column, table: string, deleted: 'cascade' | 'set null'): Column {
  return { type, define: (plain) => define(plain).references(`${table}.id`).onDelete(deleted) };
}

/** The id of the row that owns this one. */
export const ownedBy = (table: string): Column => referring(text, table, 'cascade');

/** The columns of most tables. */
export const row = { id: key, createdAt: text, updatedAt: text };

interface Constraints {
  /** Columns of the primary key, unless a single column is it. */
  readonly primary?: readonly string[];
  /** Lists of columns in which no two rows are the same. */
  readonly unique?: readonly (readonly string[])[];
}

type Only = readonly [column: string, is: 'is' | 'is not', value: null];

export class SchemaWriter {
  readonly schema: SchemaModule;
  readonly isPostgres: boolean;
  readonly #run: (statement: string) => Promise<unknown>;

  /** @param run runs a statement in the transaction of the migration */
  constructor(schema: SchemaModule, isPostgres: boolean, run: (statement: string) => Promise<unknown>) {
    this.schema = schema;
    this.isPostgres = isPostgres;
    this.#run = run;
  }

  async table(
    name: string,
    columns: Readonly<Record<string, Column>>,
    { primary, unique = [] }: Constraints = {},
  ): Promise<void> {
    let table: CreateTableBuilder<string, string> = this.schema.createTable(name);
    for (const [column, { type, define }] of Object.entries(columns))
      table = table.addColumn(column, this.#typeOf(type), define);
    if (primary !== undefined) table = table.addPrimaryKeyConstraint(`${name}_pkey`, [...primary]);
    for (const list of unique) table = table.addUniqueConstraint(`${name}_${list.join('_')}_key`, [...list]);
    await table.execute();
  }

  /** In both databases, text is sorted by bytes, and integers have 64 bits. */
  #typeOf(type: Column['type']): ColumnDataType | Expression<unknown> {
    if (!this.isPostgres) return type;
    return type === 'text' ? sql`text collate "C"` : 'bigint';
  }

  /**
   * Makes an index with the name `TABLE_NAME`.
   *
   * @param only a column that is or is not null in the rows of the index; without it, the index has all rows
   */
  async index(table: string, name: string, columns: readonly string[], only?: Only): Promise<void> {
    const index = this.schema
      .createIndex(`${table}_${name}`)
      .on(table)
      .columns([...columns]);
    await (only === undefined ? index : index.where(...only)).execute();
  }

  /** Runs statements for which Kysely has no builder, such as triggers. */
  async run(statements: readonly string[]): Promise<void> {
    for (const statement of statements) await this.#run(statement);
  }
}
