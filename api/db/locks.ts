/**
 * Locks for concurrent writers. SQLite runs one write transaction at a time, so there these functions do nothing.
 * PostgreSQL runs them concurrently. A transaction must first lock the rows that its decision depends on and read them
 * afterwards. docs/architecture.md ("Concurrent writers") defines the order.
 */
import { type SelectQueryBuilder, sql } from 'kysely';
import { isPostgres } from './migrations/schema-writer.ts';
import type { Database } from './schema.ts';

/** Lock tables in this order, and rows of a table in the order of their ids, to avoid deadlocks. */
type LockedTable =
  | 'organizations'
  | 'users'
  | 'workspaces'
  | 'surveys'
  | 'contacts'
  | 'displays'
  | 'responses'
  | 'events';

/**
 * Locks rows: only this transaction changes them, counts what belongs to them, or lets new rows refer to them. Call it
 * within a transaction, before reading what depends on the rows. A missing row is not locked.
 */
export async function lockRow(trx: Database, table: LockedTable, ...ids: readonly string[]): Promise<void> {
  if (ids.length === 0 || !isPostgres(trx)) return;
  await sql`select 1 from ${sql.table(table)} where "id" in (${sql.join(ids)}) order by "id" for update`.execute(
    trx,
  );
}

/**
 * Waits until no other transaction has locked the row, and lets none do so. A new row that refers to it does the same, but
 * only after it was written to the indexes, where others may wait for it: call this before, if they may hold the lock.
 */
export async function keepRow(trx: Database, table: LockedTable, id: string): Promise<void> {
  if (!isPostgres(trx)) return;
  await sql`select 1 from ${sql.table(table)} where "id" = ${id} for key share`.execute(trx);
}

/** Takes a lock without a row, for resources that exist once in the database. Take it after all row locks. */
export async function lockName(trx: Database, name: string): Promise<void> {
  if (!isPostgres(trx)) return;
  await sql`select pg_advisory_xact_lock(hashtextextended(${`floodgate:${name}`}, 0))`.execute(trx);
}

/** Selects and locks only rows that no other transaction has locked. For queues and sweeps. */
export function unlocked<Tables, Table extends keyof Tables, Row>(
  db: Database,
  query: SelectQueryBuilder<Tables, Table, Row>,
): SelectQueryBuilder<Tables, Table, Row> {
  return isPostgres(db) ? query.forUpdate().skipLocked() : query;
}
