/**
 * Reads the schema from a database in memory that all migrations have created. So new tables and columns are copied
 * without further code.
 */
import { sql } from 'kysely';
import { openDatabase } from '../database.ts';
import { migrate } from '../migrate.ts';
import type { Database } from '../schema.ts';
import { digestOf, type TableDigest } from './digest.ts';
import { type Index, readIndexes } from './indexes.ts';

/**
 * Tables of the migrator and of communication between processes. No process runs during a copy, and triggers in the
 * target fill `stateChanges`.
 */
export const NOT_COPIED: readonly string[] = ['migrations', 'migrationsLock', 'stateChanges'];

export interface TableShape {
  readonly name: string;
  readonly columns: readonly string[];
  readonly texts: readonly string[];
  readonly key: readonly string[];
  /** Digest of the rows that migrations insert. */
  readonly seed: TableDigest;
}

export interface Shape {
  readonly migrations: readonly string[];
  /** Tables in an order in which each follows all tables that it refers to. */
  readonly tables: readonly TableShape[];
  readonly indexes: readonly Index[];
}

interface Column {
  readonly name: string;
  readonly type: string;
  /** Position in the primary key, from 1; 0 if it is not part of it. */
  readonly pk: number;
}

export async function readShape(): Promise<Shape> {
  const db = openDatabase({ kind: 'memory' });
  try {
    const migrations = await migrate(db);
    const tables = new Map<string, TableShape & { readonly refersTo: readonly string[] }>();
    const { rows } = await sql<{ name: string }>`
      select "name" from sqlite_master where "type" = 'table' and "name" not like 'sqlite%' order by "name"`.execute(
      db,
    );
    for (const { name } of rows) {
      if (!NOT_COPIED.includes(name)) tables.set(name, await readTable(db, name));
    }
    return { migrations, tables: inOrder(tables), indexes: await readIndexes(db) };
  } finally {
    await db.destroy();
  }
}

async function readTable(db: Database, name: string) {
  const { rows: columns } =
    await sql<Column>`select "name", "type", "pk" from pragma_table_info(${name})`.execute(db);
  const { rows: references } = await sql<{ table: string }>`
    select distinct "table" from pragma_foreign_key_list(${name})`.execute(db);
  const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
  if (key.length === 0) throw new Error(`The table ${name} needs a primary key: it is read and copied by it`);
  const shape = {
    name,
    columns: columns.map((column) => column.name),
    texts: columns.filter(({ type }) => type.toLowerCase() === 'text').map((column) => column.name),
    key: key.map((column) => column.name),
    refersTo: references.map(({ table }) => table).filter((table) => table !== name),
  };
  return { ...shape, seed: await digestOf(db, shape) };
}

/** Sorts tables so that each follows the ones it refers to. */
function inOrder<T extends { readonly name: string; readonly refersTo: readonly string[] }>(
  tables: ReadonlyMap<string, T>,
): readonly T[] {
  const placed = new Map<string, T>();
  while (placed.size < tables.size) {
    const next = [...tables.values()].filter(
      ({ name, refersTo }) => !placed.has(name) && refersTo.every((table) => placed.has(table)),
    );
    if (next.length === 0)
      throw new Error('Some tables refer to each other in a circle: none can be copied first');
    for (const table of next) placed.set(table.name, table);
  }
  return [...placed.values()];
}
