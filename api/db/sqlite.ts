/** Opens a file of SQLite. Only this file and the driver name better-sqlite3. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import { Kysely } from 'kysely';
import type { Millis } from '#shared/clock.ts';
import { DatabaseFault, DatabaseUnavailable, type OnFault, reasonOf, withFault } from './faults.ts';
import type { DatabaseLocation } from './location.ts';
import type { Database } from './schema.ts';
import { BUSY_TIMEOUT_MS, createSqliteDialect } from './sqlite-driver.ts';

/** Pages kept at most. SQLite's own 2 MB do not hold the upper levels of the indexes of a million responses. */
const READER_CACHE_KIB = 65_536;
const WRITER_CACHE_KIB = 32_768;

type SqliteLocation = Exclude<DatabaseLocation, { readonly kind: 'postgres' }>;

interface SqliteOptions {
  /** How long a write waits, for its turn and for another process together. */
  readonly busyTimeoutMs?: Millis | undefined;
  readonly synchronous?: 'full' | 'normal' | undefined;
  readonly onFault?: OnFault | undefined;
}

/**
 * @throws DatabaseUnavailable when the folder cannot be made or written to, or the file is not a SQLite database;
 *   DatabaseFault when it is a damaged one
 */
export function openSqlite(
  location: SqliteLocation,
  { busyTimeoutMs = BUSY_TIMEOUT_MS, synchronous = 'full', onFault }: SqliteOptions = {},
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
    throw isDamaged && !isWrongFile(error) ? fault : cannotOpen(path, error);
  }
}

function cannotOpen(path: string, cause: unknown): DatabaseUnavailable {
  const advice = 'give a path in a folder that this user may write to';
  return new DatabaseUnavailable(`cannot open ${path} (${reasonOf(cause)}); ${advice}`, cause);
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
