/**
 * Locks for writers at once. SQLite runs one writing transaction at a time, so there these do nothing. PostgreSQL runs
 * them side by side, and each statement sees what was committed before it: whoever reads, decides and writes locks first
 * what the decision is about, and reads after that. docs/architecture.md ("Writers at once") has the order.
 */
import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';
import { isPostgres } from './dialect.ts';
import type { Database } from './schema.ts';

/** In this order, and rows of one table in the order of their ids: then nobody waits in a circle. */
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
  | 'contactAttributeKeys'
  | 'tags';

/**
 * - `keep`: it is not deleted until the transaction ends. Anybody may do that at once, and every reference does it.
 * - `change`: nobody else changes it, or counts what belongs to it. New rows may refer to it.
 * - `delete`: neither; and who refers to it from here on waits.
 */
type Lock = 'keep' | 'change' | 'delete';

const clauses = {
  keep: sql`for key share`,
  change: sql`for no key update`,
  delete: sql`for update`,
} as const;

/** Can several transactions write at once? */
export function hasManyWriters(db: Kysely<Database>): boolean {
  return isPostgres(db);
}

/** Call it inside a transaction, before what depends on the row is read. A row that is not there is nobody's. */
export async function lockRow(
  trx: Kysely<Database>,
  table: LockedTable,
  id: string,
  lock: Lock = 'change',
): Promise<void> {
  await lockRows(trx, table, [id], lock);
}

/** Likewise, in the order of the ids. */
export async function lockRows(
  trx: Kysely<Database>,
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

/** For what has no row to lock, such as what is there once in the whole database. It comes after all rows. */
export async function lockName(trx: Kysely<Database>, name: string): Promise<void> {
  if (!hasManyWriters(trx)) return;
  await sql`select pg_advisory_xact_lock(hashtextextended(${`floodgate:${name}`}, 0))`.execute(trx);
}

/** Only rows that nobody else is at, and these are the caller's until the transaction ends: for queues and sweeps. */
export function unlocked<Tables, Table extends keyof Tables, Row>(
  db: Kysely<Database>,
  query: SelectQueryBuilder<Tables, Table, Row>,
): SelectQueryBuilder<Tables, Table, Row> {
  return hasManyWriters(db) ? query.forUpdate().skipLocked() : query;
}

/** Rows that are about to be changed together, in the order of their ids; who is at one of them is waited for. */
export function inTurn<Tables, Table extends keyof Tables, Row>(
  db: Kysely<Database>,
  query: SelectQueryBuilder<Tables, Table, Row>,
): SelectQueryBuilder<Tables, Table, Row> {
  return hasManyWriters(db) ? query.orderBy(sql`"id"`).forNoKeyUpdate() : query;
}

/**
 * Rows that are there until the transaction ends: for those that new rows are about to refer to. Without a transaction a
 * lock would end with its statement, and yet be written to the disk.
 */
export function kept<Tables, Table extends keyof Tables, Row>(
  db: Kysely<Database>,
  query: SelectQueryBuilder<Tables, Table, Row>,
): SelectQueryBuilder<Tables, Table, Row> {
  return hasManyWriters(db) && db.isTransaction ? query.forKeyShare() : query;
}
