/** Opens a SQLite file beside the API's own connections: alone for a copy, or while it is in use for a backup. */
import SqliteDatabase from 'better-sqlite3';
import { codeOf, DatabaseInUse, DatabaseUnavailable, reasonOf, withFault } from './faults.ts';

/** An open file. Only this folder's files know the package. */
export type SqliteFile = SqliteDatabase.Database;

/**
 * Opens a file for reading. No other process may open it until it is closed, which SQLite's own locks ensure; an API
 * cannot start on it.
 *
 * @throws DatabaseUnavailable if it cannot be read; DatabaseInUse
 */
export function openAlone(path: string): SqliteFile {
  const sqlite = open(path);
  try {
    // Integers of 64 bits without loss.
    sqlite.defaultSafeIntegers(true);
    if (sqlite.readonly) throw new Error('this user may not write to it, so it cannot be locked');
    sqlite.pragma('locking_mode = exclusive');
    sqlite.exec('begin exclusive');
    sqlite.pragma('query_only = on');
    return sqlite;
  } catch (error) {
    sqlite.close();
    if (isBusy(error)) throw new DatabaseInUse(path, error);
    throw cannotRead(path, error);
  }
}

/**
 * Writes a snapshot to a new file while other processes write.
 *
 * @throws DatabaseUnavailable, DatabaseFault; DatabaseInUse if another process has exclusive access
 */
export function writeSqliteBackup(path: string, file: string): void {
  const sqlite = open(path);
  try {
    sqlite.prepare('vacuum into ?').run(file);
  } catch (error) {
    throw isBusy(error) ? new DatabaseInUse(path, error) : withFault(error);
  } finally {
    sqlite.close();
  }
}

function open(path: string): SqliteFile {
  try {
    return new SqliteDatabase(path, { timeout: 0, fileMustExist: true });
  } catch (error) {
    throw cannotRead(path, error);
  }
}

function cannotRead(path: string, cause: unknown): DatabaseUnavailable {
  return new DatabaseUnavailable(
    `cannot open ${path} (${reasonOf(cause)}); give the file of a database that this user may read and write`,
    cause,
  );
}

function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY');
}
