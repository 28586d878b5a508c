/** A database of PostgreSQL as it is at one moment, to read from: for copies and comparisons. */
import { type ControlledTransaction, type Kysely, sql } from 'kysely';
import { DatabaseBusy, DatabaseInUse } from './faults.ts';
import type { PostgresLocation } from './postgres-address.ts';
import type { Database } from './schema.ts';

/**
 * Begins a transaction that sees one moment; the caller rolls it back.
 *
 * @param db without a bound on the time of a statement
 * @param locked tables that nobody may write to meanwhile: an API that is there is refused, one that comes later can read
 * @throws DatabaseInUse
 */
export async function beginPostgresSnapshot(
  db: Kysely<Database>,
  { applicationName, database }: PostgresLocation,
  locked: readonly string[],
): Promise<ControlledTransaction<Database>> {
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
    // Between two tables as much time may pass as the other database takes.
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(trx);
    if (locked.length > 0) {
      // Before the first read: PostgreSQL takes the snapshot with that.
      await sql`lock table ${sql.join(locked.map((name) => sql.table(name)))} in share mode`.execute(trx);
    }
  } catch (error) {
    await trx.rollback().execute();
    throw error instanceof DatabaseBusy ? new DatabaseInUse(`the database ${database}`, error) : error;
  }
  return trx;
}
