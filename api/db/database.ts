import type { Millis } from '#shared/clock.ts';
import type { Synchronous } from './address-settings.ts';
import { codeOf, type DatabaseBusy, type OnFault, reasonOf } from './faults.ts';
import type { DatabaseLocation } from './location.ts';
import { uniqueName } from './migrations/schema-writer.ts';
import { type OnAway, PostgresKysely } from './postgres-driver.ts';
import { awaitPostgres } from './postgres-start.ts';
import type { Database } from './schema.ts';
import { openSqlite } from './sqlite.ts';

export interface DatabaseOptions {
  readonly synchronous?: Synchronous;
  readonly onFault?: OnFault;
  /** SQLite only: how long a write may wait, for its turn and for other processes together. */
  readonly busyTimeoutMs?: Millis;
  /** Called when PostgreSQL becomes unavailable or available. */
  readonly onAway?: OnAway;
  readonly poolSize?: number;
  readonly statementTimeoutMs?: Millis;
}

/**
 * Does not connect to PostgreSQL yet; `awaitDatabase` does.
 *
 * @param options take precedence over the settings in the address
 * @throws DatabaseUnavailable if the folder cannot be created or written to, the file is not a SQLite database, or a
 *   certificate cannot be read; DatabaseFault if the file is damaged
 */
export function openDatabase(location: DatabaseLocation, options: DatabaseOptions = {}): Database {
  if (location.kind === 'postgres') return new PostgresKysely(location, { ...location.settings, ...options });
  const synchronous = location.kind === 'file' ? location.synchronous : undefined;
  return openSqlite(location, { synchronous, ...options });
}

const WAIT_MS: Millis = 30_000;

/**
 * Waits until PostgreSQL answers. A SQLite file needs no waiting.
 *
 * @param waitMs default: the time in the address
 * @param onWait called once if there is a wait
 * @throws DatabaseUnavailable if the server does not answer in time, refuses the login, or cannot be used
 */
export async function awaitDatabase(
  db: Database,
  location: DatabaseLocation,
  waitMs: Millis | undefined,
  onWait: (reason: DatabaseBusy, waitMs: Millis) => void,
): Promise<void> {
  if (location.kind !== 'postgres') return;
  const wait = waitMs ?? location.settings.waitMs ?? WAIT_MS;
  await awaitPostgres(db, location, wait, (reason) => onWait(reason, wait));
}

/**
 * Whether a unique index has refused a write.
 *
 * @param constraint the columns of the index in order, each `table.column`; without them any index matches
 */
export function isUniqueViolation(error: unknown, ...constraint: readonly string[]): boolean {
  const code = codeOf(error);
  if (code === 'SQLITE_CONSTRAINT_UNIQUE' || code === 'SQLITE_CONSTRAINT_PRIMARYKEY')
    return constraint.length === 0 || reasonOf(error).endsWith(`: ${constraint.join(', ')}`);
  if (code !== '23505' || !(error instanceof Error)) return false;
  const [table = ''] = constraint[0]?.split('.') ?? [];
  const columns = constraint.map((column) => column.slice(table.length + 1));
  return constraint.length === 0 || Reflect.get(error, 'constraint') === uniqueName(table, columns);
}
