/** Opens a consistent snapshot of PostgreSQL, for copies and comparisons. */
import { type ControlledTransaction, sql } from 'kysely';
import { DatabaseBusy, DatabaseInUse } from './faults.ts';
import type { PostgresLocation } from './postgres-address.ts';
import type { Database, Tables } from './schema.ts';

/**
 * Begins a transaction on a snapshot. The caller rolls it back.
 *
 * @param db without a time limit for statements
 * @param locked tables that nobody may write to in the meantime; fails if an API is running, and one that starts later
 * can only read
 * @throws DatabaseInUse
 */
export async function beginPostgresSnapshot(
  db: Database,
  { applicationName, database }: PostgresLocation,
  locked: readonly string[],
): Promise<ControlledTransaction<Tables>> {
  if (locked.length > 0) {
    const { rows } = await sql<{ count: number }>`
      select count(*) as "count" from pg_stat_activity
      where "datname" = current_database() and "application_name" = ${applicationName}`.execute(db);
    if (rows[0]?.count !== 0) throw new DatabaseInUse(`the database ${database}`);
  }
  const trx = await db
    .startTransaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute();
  try {
    // While the other database works on a table, this transaction is idle.
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(trx);
    if (locked.length > 0) {
      // Lock the tables before the first read, because the first read takes the snapshot.
      await sql`lock table ${sql.join(locked.map((name) => sql.table(name)))} in share mode`.execute(trx);
    }
  } catch (error) {
    await trx.rollback().execute();
    throw error instanceof DatabaseBusy ? new DatabaseInUse(`the database ${database}`, error) : error;
  }
  return trx;
}
