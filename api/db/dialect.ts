/**
 * Everything in which SQLite and PostgreSQL differ for queries, which are written once. What differs for tables is in
 * `migrations/`.
 *
 * Text is compared and sorted by bytes, as in SQLite (`collate "C"`), and integers have 64 bits. PostgreSQL limits
 * index entries to 2,704 bytes, so columns with longer text are indexed by a digest.
 */
import { PostgresAdapter, sql } from 'kysely';
import type { Database } from './schema.ts';

export function isPostgres(db: Database): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

/** Whether the table exists in the schema of unqualified names. */
export async function hasTable(db: Database, name: string): Promise<boolean> {
  const query = isPostgres(db)
    ? sql<{ name: string | null }>`select to_regclass(quote_ident(${name}))::text as "name"`
    : sql<{ name: string | null }>`select name from sqlite_master where type = 'table' and name = ${name}`;
  const { rows } = await query.execute(db);
  return rows.some((row) => row.name !== null);
}
