/** Opens the database, and knows how its driver reports what it refuses. The only file that names better-sqlite3. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import { Kysely } from 'kysely';
import type { Millis } from '#shared/clock.ts';
import { DatabaseFault, withFault } from './faults.ts';
import type { DatabaseLocation } from './location.ts';
import type { Database } from './schema.ts';
import { BUSY_TIMEOUT_MS, createSqliteDialect, type OnFault } from './sqlite-driver.ts';

/** Pages kept at most. SQLite's own 2 MB do not hold the upper levels of the indexes of a million responses. */
const READER_CACHE_KIB = 65_536;
const WRITER_CACHE_KIB = 32_768;

/**
 * When a transaction is on the medium. `full`: before its caller hears of it, so a power failure loses nothing that was
 * acknowledged. `normal`: some time later; the end of the process loses nothing, that of the machine the last ones.
 */
export type Synchronous = 'full' | 'normal';

export interface DatabaseOptions {
  readonly busyTimeoutMs?: Millis;
  readonly synchronous?: Synchronous;
  readonly onFault?: OnFault;
}

/** The database cannot be opened; the message is fit for the operator. */
export class DatabaseUnavailable extends Error {
  constructor(path: string, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(
      `DATABASE_URL: cannot open ${path} (${reason}); give a path in a folder that this user may write to`,
      {
        cause,
      },
    );
    this.name = 'DatabaseUnavailable';
  }
}

/**
 * @throws DatabaseUnavailable when the folder cannot be made or written to, or the file is not a SQLite database;
 *   DatabaseFault when it is a damaged one
 */
export function openDatabase(
  location: DatabaseLocation,
  { busyTimeoutMs = BUSY_TIMEOUT_MS, synchronous = 'full', onFault }: DatabaseOptions = {},
): Kysely<Database> {
  const path = location.kind === 'memory' ? ':memory:' : location.path;
  try {
    if (location.kind === 'file') mkdirSync(dirname(location.path), { recursive: true });
    const writer = open(path, WRITER_CACHE_KIB);
    writer.pragma(`synchronous = ${synchronous}`);
    writer.pragma('journal_mode = WAL');
    if (writer.readonly) throw new Error('the file is read-only');
    const reader = location.kind === 'memory' ? writer : open(path, READER_CACHE_KIB);
    for (const handle of [writer, reader]) handle.pragma('busy_timeout = 0');
    return new Kysely<Database>({
      dialect: createSqliteDialect({ writer, reader }, busyTimeoutMs, onFault),
    });
  } catch (error) {
    const fault = withFault(error);
    // A file that is no database at all is the wrong file, not a damaged one.
    const isDamaged = fault instanceof DatabaseFault && fault.problem === 'database_damaged';
    throw isDamaged && !isWrongFile(error) ? fault : new DatabaseUnavailable(path, error);
  }
}

function isWrongFile(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'SQLITE_NOTADB';
}

/** Another process may be starting, recovering or leaving: opening waits. What comes later does not block the event loop. */
function open(path: string, cacheKib: number): SqliteDatabase.Database {
  const sqlite = new SqliteDatabase(path, { timeout: BUSY_TIMEOUT_MS });
  sqlite.pragma('foreign_keys = ON');
  sqlite.pragma(`cache_size = -${cacheKib}`);
  return sqlite;
}

/**
 * Did a unique index refuse this write? Knows SQLite's codes.
 *
 * @param constraint the columns of the index, `table.column` and in its order; unset: any
 */
export function isUniqueViolation(error: unknown, ...constraint: readonly string[]): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false;
  if (error.code !== 'SQLITE_CONSTRAINT_UNIQUE' && error.code !== 'SQLITE_CONSTRAINT_PRIMARYKEY')
    return false;
  return constraint.length === 0 || error.message.endsWith(`: ${constraint.join(', ')}`);
}
