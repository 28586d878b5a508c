/** Opens a consistent snapshot of a SQLite file, for copies, comparisons and backups. */
import SqliteDatabase from 'better-sqlite3';
import { Kysely } from 'kysely';
import { codeOf, DatabaseInUse, DatabaseUnavailable, reasonOf, withFault } from './faults.ts';
import type { Database, Tables } from './schema.ts';
import { createSqliteDialect } from './sqlite-driver.ts';

/**
 * @param isExclusive no other process may open the file until this is closed, which SQLite's own locks ensure; an API
 * cannot start on it. Otherwise others may write, which the snapshot does not show.
 * @throws DatabaseUnavailable if it cannot be read; DatabaseInUse
 */
export function openSqliteSnapshot(path: string, isExclusive: boolean): Database {
  const sqlite = open(path, !isExclusive);
  try {
    // Integers of 64 bits without loss.
    sqlite.defaultSafeIntegers(true);
    if (isExclusive) {
      if (sqlite.readonly) throw new Error('this user may not write to it, so it cannot be locked');
      sqlite.pragma('locking_mode = exclusive');
      sqlite.exec('begin exclusive');
      sqlite.pragma('query_only = on');
    } else {
      sqlite.exec('begin');
    }
    // SQLite takes the snapshot at the first read.
    sqlite.prepare('select count(*) from sqlite_master').get();
  } catch (error) {
    sqlite.close();
    if (isBusy(error)) throw new DatabaseInUse(path, error);
    throw cannotRead(path, error);
  }
  return new Kysely<Tables>({ dialect: createSqliteDialect({ writer: sqlite, reader: sqlite }) });
}

/**
 * Writes a snapshot to a new file while other processes write.
 *
 * @throws DatabaseUnavailable, DatabaseFault; DatabaseInUse if another process has exclusive access
 */
export function writeSqliteBackup(path: string, file: string): void {
  const sqlite = open(path, false);
  try {
    sqlite.prepare('vacuum into ?').run(file);
  } catch (error) {
    throw isBusy(error) ? new DatabaseInUse(path, error) : withFault(error);
  } finally {
    sqlite.close();
  }
}

function open(path: string, isReadonly: boolean): SqliteDatabase.Database {
  try {
    return new SqliteDatabase(path, { timeout: 0, fileMustExist: true, readonly: isReadonly });
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
