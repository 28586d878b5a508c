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
  | 'responses'
  | 'segments'
  | 'webhooks'
  | 'contactAttributeKeys';

/**
 * - `keep`: the row is not deleted until the transaction ends. Compatible with `keep` and `change`; foreign keys use
 *   it.
 * - `change`: only this transaction changes the row or counts what belongs to it. New rows may still refer to it.
 * - `delete`: like `change`, and new references wait as well.
 */
type Lock = 'keep' | 'change' | 'delete';

const clauses = {
  keep: sql`for key share`,
  change: sql`for no key update`,
  delete: sql`for update`,
} as const;

/** Whether several transactions can write at the same time. */
export function hasManyWriters(db: Database): boolean {
  return isPostgres(db);
}

/** Call it within a transaction, before reading what depends on the row. A missing row is not locked. */
export async function lockRow(
  trx: Database,
  table: LockedTable,
  id: string,
  lock: Lock = 'change',
): Promise<void> {
  await lockRows(trx, table, [id], lock);
}

/** Locks several rows of a table, in the order of their ids. */
export async function lockRows(
  trx: Database,
  table: LockedTable,
  ids: readonly string[],
  lock: Lock = 'change',
): Promise<void> {
  if (ids.length === 0 || !hasManyWriters(trx)) return;
  const list = sql.join(ids.map((id) => sql.val(id)));
  await sql`select 1 from ${sql.table(table)} where "id" in (${list}) order by "id" ${clauses[lock]}`.execute(
    trx,
  );
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
  return hasManyWriters(db) ? query.orderBy(sql`"id"`).forNoKeyUpdate() : query;
}

/**
 * Keeps rows from being deleted until the transaction ends, because new rows will refer to them. Outside a transaction
 * the lock would end with its statement, but still cause a write.
 */
export function kept<Tables, Table extends keyof Tables, Row>(
  db: Database,
  query: SelectQueryBuilder<Tables, Table, Row>,
): SelectQueryBuilder<Tables, Table, Row> {
  return hasManyWriters(db) && db.isTransaction ? query.forKeyShare() : query;
}
