/** Opens the database, whichever it is. */
import type { Kysely } from 'kysely';
import type { Millis } from '#shared/clock.ts';
import type { DatabaseBusy, OnFault } from './faults.ts';
import type { DatabaseLocation } from './location.ts';
import { type OnAway, PostgresKysely } from './postgres-driver.ts';
import { violatedIndex as violatedIndexOfPostgres } from './postgres-errors.ts';
import { awaitPostgres } from './postgres-start.ts';
import type { Database } from './schema.ts';
import { openSqlite } from './sqlite.ts';
import { violatedIndex as violatedIndexOfSqlite } from './sqlite-driver.ts';

/**
 * When a transaction is on the medium. `full`: before its caller hears of it, so a power failure loses nothing that was
 * acknowledged. `normal`: some time later; the end of the process loses nothing, that of the machine the last ones.
 */
export type Synchronous = 'full' | 'normal';

export interface DatabaseOptions {
  readonly synchronous?: Synchronous;
  readonly onFault?: OnFault;
  /** SQLite only: how long a write waits, for its turn and for another process together. */
  readonly busyTimeoutMs?: Millis;
  /** These are PostgreSQL's only. */
  readonly onAway?: OnAway;
  readonly poolSize?: number;
  readonly statementTimeoutMs?: Millis;
}

/**
 * PostgreSQL is not asked yet: `awaitDatabase` does.
 *
 * @throws DatabaseUnavailable when the folder cannot be made or written to, the file is not a SQLite database, or a
 *   certificate cannot be read; DatabaseFault when the file is a damaged one
 */
export function openDatabase(location: DatabaseLocation, options: DatabaseOptions = {}): Kysely<Database> {
  return location.kind === 'postgres' ? new PostgresKysely(location, options) : openSqlite(location, options);
}

/**
 * Waits for a server that is not up yet; a file is there once it is open.
 *
 * @param onWait is called once, when there is something to wait for
 * @throws DatabaseUnavailable when it does not answer in time, refuses us, or is none that we can use
 */
export async function awaitDatabase(
  db: Kysely<Database>,
  location: DatabaseLocation,
  waitMs: Millis,
  onWait: (reason: DatabaseBusy) => void,
): Promise<void> {
  if (location.kind === 'postgres') await awaitPostgres(db, location, waitMs, onWait);
}

/**
 * Did a unique index refuse this write?
 *
 * @param constraint the columns of the index, `table.column` and in its order; unset: any
 */
export function isUniqueViolation(error: unknown, ...constraint: readonly string[]): boolean {
  const columns = violatedIndexOfPostgres(error) ?? violatedIndexOfSqlite(error);
  return columns !== null && (constraint.length === 0 || columns.join() === constraint.join());
}
