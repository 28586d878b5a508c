/** Opens a SQLite file. Only this file and the driver know better-sqlite3. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import { Kysely } from 'kysely';
import type { Millis } from '#shared/clock.ts';
import { codeOf, DatabaseFault, DatabaseUnavailable, type OnFault, reasonOf, withFault } from './faults.ts';
import type { DatabaseLocation } from './location.ts';
import type { Database, Tables } from './schema.ts';
import { BUSY_TIMEOUT_MS, createSqliteDialect } from './sqlite-driver.ts';

/** Cache sizes. SQLite's default of 2 MB is too small for the upper index levels of a million responses. */
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
 * @throws DatabaseUnavailable if the folder cannot be created or written to, or the file is not a SQLite database;
 *   DatabaseFault if it is damaged
 */
export function openSqlite(
  location: SqliteLocation,
  { busyTimeoutMs = BUSY_TIMEOUT_MS, synchronous = 'full', onFault }: SqliteOptions = {},
): Database {
  const path = location.kind === 'memory' ? ':memory:' : location.path;
  try {
    if (location.kind === 'file') mkdirSync(dirname(location.path), { recursive: true });
    const writer = open(path, WRITER_CACHE_KIB);
    writer.pragma(`synchronous = ${synchronous}`);
    writer.pragma('journal_mode = WAL');
    if (writer.readonly) throw new Error('the file is read-only');
    const reader = location.kind === 'memory' ? writer : open(path, READER_CACHE_KIB);
    for (const handle of [writer, reader]) handle.pragma('busy_timeout = 0');
    return new Kysely<Tables>({
      dialect: createSqliteDialect({ writer, reader }, busyTimeoutMs, onFault),
    });
  } catch (error) {
    const fault = withFault(error);
    // A file that was never a database is the wrong file, not a damaged one.
    const isDamaged = fault instanceof DatabaseFault && fault.problem === 'database_damaged';
    throw isDamaged && !isWrongFile(error) ? fault : cannotOpen(path, error);
  }
}

function cannotOpen(path: string, cause: unknown): DatabaseUnavailable {
  const advice = 'give a path in a folder that this user may write to';
  return new DatabaseUnavailable(`cannot open ${path} (${reasonOf(cause)}); ${advice}`, cause);
}

function isWrongFile(error: unknown): boolean {
  return codeOf(error) === 'SQLITE_NOTADB';
}

/**
 * Opens the file. This may block, because another process may be starting, recovering or closing. Later calls do not
 * block.
 */
function open(path: string, cacheKib: number): SqliteDatabase.Database {
  const sqlite = new SqliteDatabase(path, { timeout: BUSY_TIMEOUT_MS });
  sqlite.pragma('foreign_keys = ON');
  sqlite.pragma(`cache_size = -${cacheKib}`);
  return sqlite;
}
