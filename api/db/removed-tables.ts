/**
 * Drops the tables of removed features, and keeps their rows. On SQLite, the whole database is copied to a file beside
 * it first. On PostgreSQL, which has its own tools for copies, a table with rows gets another name instead.
 */
import { sql } from 'kysely';
import { backUp } from './backup.ts';
import { isPostgres } from './dialect.ts';
import type { Database } from './schema.ts';

/**
 * Call it in the transaction of the migration: the copy then has everything from before, and no other process writes
 * meanwhile.
 *
 * @param migration the name of the migration, which the copy gets
 * @returns a sentence for the log; null if there were no rows
 * @throws DatabaseUnavailable, DatabaseFault if the copy cannot be written
 */
export async function dropTables(
  trx: Database,
  migration: string,
  tables: readonly string[],
): Promise<string | null> {
  const filled: string[] = [];
  for (const table of tables) {
    const { rows } = await sql<{
      count: number;
    }>`select count(*) as "count" from ${sql.table(table)}`.execute(trx);
    const count = Number(rows[0]?.count);
    if (count > 0) filled.push(`${table} (${count} ${count === 1 ? 'row' : 'rows'})`);
  }
  const kept = filled.length === 0 ? '' : await keep(trx, migration);
  for (const table of tables) {
    const isKept = isPostgres(trx) && filled.some((text) => text.startsWith(`${table} `));
    await (isKept
      ? sql`alter table ${sql.table(table)} rename to ${sql.table(`removed_${table}`)}`
      : sql`drop table ${sql.table(table)}`
    ).execute(trx);
  }
  return filled.length === 0
    ? null
    : `removed tables of features that are gone: ${filled.join(', ')}; ${kept}`;
}

/** @returns where the rows are, for the log */
async function keep(trx: Database, migration: string): Promise<string> {
  if (isPostgres(trx))
    return 'they are renamed, with "removed_" before the name: drop them if you do not need them';
  const { rows } = await sql<{
    file: string;
  }>`select file from pragma_database_list where name = 'main'`.execute(trx);
  const path = rows[0]?.file ?? '';
  if (path === '') return 'a database in memory keeps no copy';
  const file = `${path}.before-${migration}`;
  await backUp({ kind: 'file', path }, file);
  return `${file} is a copy of the database from before`;
}
