/** Opens the database, and knows how its driver reports what it refuses. The only file that names better-sqlite3. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import type { DatabaseLocation } from './location.ts';
import type { Database } from './schema.ts';

/** How long a statement waits for another process to finish its write. */
const BUSY_TIMEOUT_MS = 5_000;
/** Pages kept at most. SQLite's own 2 MB do not hold the upper levels of the indexes of a million responses. */
const CACHE_KIB = 65_536;
/** Prepared statements kept for reuse. The code has fewer than this; lists of ids give each length its own text. */
const STATEMENTS_MAX = 500;

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
 * @throws DatabaseUnavailable when the folder cannot be made or written to, or the file is not a SQLite database
 */
export function openDatabase(location: DatabaseLocation): Kysely<Database> {
  const path = location.kind === 'memory' ? ':memory:' : location.path;
  try {
    if (location.kind === 'file') mkdirSync(dirname(location.path), { recursive: true });
    const sqlite = new SqliteDatabase(path, { timeout: BUSY_TIMEOUT_MS });
    sqlite.pragma('journal_mode = WAL');
    // With WAL, NORMAL loses no committed transaction when the process dies, only when the machine does.
    sqlite.pragma('synchronous = NORMAL');
    sqlite.pragma('foreign_keys = ON');
    sqlite.pragma(`cache_size = -${CACHE_KIB}`);
    if (sqlite.readonly) throw new Error('the file is read-only');
    return new Kysely<Database>({ dialect: new SqliteDialect({ database: withStatementCache(sqlite) }) });
  } catch (error) {
    throw new DatabaseUnavailable(path, error);
  }
}

/**
 * Takes the lock for writing at once. SQLite's plain `begin` takes it with the first write, and refuses when another
 * process wrote since the first read: no waiting helps then, so a change that reads first would fail now and then.
 */
const BEGIN = 'begin immediate';

/** Preparing costs more than running for most of our statements, so the prepared ones are kept, oldest out first. */
function withStatementCache(sqlite: SqliteDatabase.Database): {
  close(): void;
  prepare(sql: string): SqliteDatabase.Statement<unknown[]>;
} {
  const statements = new Map<string, SqliteDatabase.Statement<unknown[]>>();
  return {
    close: () => void sqlite.close(),
    prepare(sql) {
      const known = statements.get(sql);
      if (known !== undefined) return known;
      const statement = sqlite.prepare<unknown[]>(sql === 'begin' ? BEGIN : sql);
      const oldest = statements.size >= STATEMENTS_MAX ? statements.keys().next().value : undefined;
      if (oldest !== undefined) statements.delete(oldest);
      statements.set(sql, statement);
      return statement;
    },
  };
}

/** Did a unique index refuse this write? Knows SQLite's codes and PostgreSQL's. */
export function isUniqueViolation(error: unknown): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false;
  return (
    error.code === 'SQLITE_CONSTRAINT_UNIQUE' ||
    error.code === 'SQLITE_CONSTRAINT_PRIMARYKEY' ||
    error.code === '23505'
  );
}
