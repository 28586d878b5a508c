import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Millis } from '#shared/clock.ts';
import { DatabaseBusy, DatabaseUnavailable, type OnTrouble } from './faults.ts';
import type { DatabaseLocation } from './location.ts';
import { PostgresKysely } from './postgres.ts';
import type { Database } from './schema.ts';
import { openSqlite } from './sqlite.ts';

/**
 * Does not connect to PostgreSQL yet; `awaitDatabase` does.
 *
 * @throws DatabaseUnavailable if the folder cannot be created or written to, or the file is not a SQLite database;
 *   DatabaseFault if the file is damaged
 */
export function openDatabase(location: DatabaseLocation, onTrouble: OnTrouble = () => undefined): Database {
  return location.kind === 'postgres'
    ? new PostgresKysely(location, onTrouble)
    : openSqlite(location.kind === 'memory' ? ':memory:' : location.path, onTrouble);
}

const PAUSE_MS: Millis = 250;

/**
 * Waits until the database answers, because Compose may start its server at the same time.
 *
 * @param onWait called once if there is a wait
 * @throws DatabaseUnavailable if it does not answer in time, DatabaseFault if it cannot be used
 */
export async function awaitDatabase(
  db: Database,
  waitMs: Millis,
  onWait: (reason: DatabaseBusy) => void = () => undefined,
): Promise<void> {
  const deadline = performance.now() + waitMs;
  for (let isFirst = true; ; isFirst = false) {
    try {
      await sql`select 1`.execute(db);
      return;
    } catch (error) {
      if (!(error instanceof DatabaseBusy)) throw error;
      if (performance.now() + PAUSE_MS > deadline)
        throw new DatabaseUnavailable(
          'the server does not answer; start it, or correct the address',
          error.cause,
        );
      if (isFirst) onWait(error);
    }
    await sleep(PAUSE_MS);
  }
}
