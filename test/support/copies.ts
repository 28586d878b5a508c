/** Creates databases to copy, and compares them without our own code. */
import { join } from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import type { Test } from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { migrate } from '#api/db/migrate.ts';
import { fillOddly } from '#test/support/odd-rows.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

/** Tables that are not copied. */
const OWN = ['migrations', 'migrationsLock'];

export interface Source {
  readonly folder: string;
  readonly path: string;
  readonly from: string;
  readonly rows: number;
}

/** Creates a file with the newest schema and no rows. */
export async function emptyFile(path: string): Promise<void> {
  const db = openDatabase({ kind: 'file', path });
  await migrate(db);
  await db.destroy();
}

/** Creates a database with odd rows in every table. */
export async function oddSource(t: Test, rowsOf: (table: string) => number = () => 30): Promise<Source> {
  const folder = temporaryFolder(t);
  const path = join(folder, 'source.sqlite');
  await emptyFile(path);
  return { folder, path, from: `file:${path}`, rows: fillOddly(path, tablesOf(path), rowsOf) };
}

/** The tables that are copied, in the order of their references. */
export function tablesOf(path: string): readonly string[] {
  const query = `select "name" from sqlite_master where "type" = 'table' and "name" not like 'sqlite%' order by "rowid"`;
  return reading(path, (sqlite) => sqlite.prepare<[], string>(query).pluck().all()).filter(
    (name) => !OWN.includes(name),
  );
}

/** All rows of a table as text, sorted. */
export function rowsOf(path: string, table: string): readonly string[] {
  return reading(path, (sqlite) =>
    sqlite.prepare<[], Record<string, unknown>>(`select * from "${table}"`).all().map(asText).sort(),
  );
}

/** Two databases write a row with the same values as the same text. */
export function asText(row: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(
    Object.entries(row)
      .map(([column, value]) => [column, value === null ? null : String(value)])
      .sort(),
  );
}

function reading<T>(path: string, read: (sqlite: SqliteDatabase.Database) => T): T {
  const sqlite = new SqliteDatabase(path, { readonly: true });
  try {
    return read(sqlite);
  } finally {
    sqlite.close();
  }
}

export function execute(path: string, statement: string): void {
  const sqlite = new SqliteDatabase(path);
  sqlite.pragma('foreign_keys = OFF');
  sqlite.exec(statement);
  sqlite.close();
}
