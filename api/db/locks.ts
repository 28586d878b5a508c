/**
 * Locks for concurrent writers. SQLite runs one write transaction at a time, so there these functions do nothing.
 * PostgreSQL runs them concurrently. A transaction must first lock the rows that its decision depends on and read them
 * afterwards. docs/architecture.md ("Concurrent writers") defines the order.
 */
import { type SelectQueryBuilder, sql } from 'kysely';
import { isPostgres } from './dialect.ts';
import type { Database } from './schema.ts';

/** Lock tables in this order, and rows of a table in the order of their ids, to avoid deadlocks. */
type LockedTable =
  | 'organizations'
  | 'users'
  | 'workspaces'
  | 'surveys'
  | 'contacts'
  | 'displays'
  | 'responses';

/** Whether several transactions can write at the same time. */
export function hasManyWriters(db: Database): boolean {
  return isPostgres(db);
}

/**
 * Locks a row: only this transaction changes it, counts what belongs to it, or lets new rows refer to it. Call it within a
 * transaction, before reading what depends on the row. A missing row is not locked.
 */
export async function lockRow(trx: Database, table: LockedTable, id: string): Promise<void> {
  await lockRows(trx, table, [id]);
}

/** Locks several rows of a table, in the order of their ids. */
export async function lockRows(trx: Database, table: LockedTable, ids: readonly string[]): Promise<void> {
  if (ids.length === 0 || !hasManyWriters(trx)) return;
  const list = sql.join(ids.map((id) => sql.val(id)));
  await sql`select 1 from ${sql.table(table)} where "id" in (${list}) order by "id" for update`.execute(trx);
}

/** Takes a lock without a row, for resources that exist once in the database. Take it after all row locks. */
export async function lockName(trx: Database, name: string): Promise<void> {
  if (!hasManyWriters(trx)) return;
  await sql`select pg_advisory_xact_lock(hashtextextended(${`floodgate:${name}`}, 0))`.execute(trx);
}

/** Selects and locks only rows that no other transaction has locked. For queues and sweeps. */
export function unlocked<Tables, Table extends keyof Tables, Row>(
  db: Database,
  query: SelectQueryBuilder<Tables, Table, Row>,
): SelectQueryBuilder<Tables, Table, Row> {
  return hasManyWriters(db) ? query.forUpdate().skipLocked() : query;
}

/** Locks rows that are changed together, in the order of their ids; waits for other transactions. */
export function inTurn<Tables, Table extends keyof Tables, Row>(
  db: Database,
  query: SelectQueryBuilder<Tables, Table, Row>,
): SelectQueryBuilder<Tables, Table, Row> {
  return hasManyWriters(db) ? query.orderBy(sql`"id"`).forUpdate() : query;
}
