/**
 * Opens a SQLite file with Kysely's own driver: one connection, on which statements and transactions take turns. Only this
 * file and `sqlite-snapshot.ts` know better-sqlite3.
 *
 * If another process holds the write lock, SQLite fails at once and the attempt is repeated after a pause, so that the
 * event loop is not blocked. After a time limit the write fails with DatabaseBusy.
 */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import SqliteDatabase from 'better-sqlite3';
import {
  CompiledQuery,
  type DatabaseConnection,
  Kysely,
  type SqliteDatabase as Prepared,
  type QueryResult,
  SqliteAdapter,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { Millis } from '#shared/clock.ts';
import {
  codeOf,
  DatabaseBusy,
  DatabaseFault,
  DatabaseUnavailable,
  type OnFault,
  reasonOf,
  withFault,
} from './faults.ts';
import type { DatabaseLocation } from './location.ts';
import type { Database, Tables } from './schema.ts';

/** SQLite's default of 2 MB is too small for the upper index levels of a million responses. */
const CACHE_KIB = 65_536;
/** How long a write may wait for other processes. */
const BUSY_TIMEOUT_MS: Millis = 5_000;
const PAUSE_MS_FIRST: Millis = 1;
const PAUSE_MS_MAX: Millis = 50;
/** Prepared statements that are kept. Lists of ids have a different text for each length. */
const STATEMENTS_MAX = 500;

type SqliteLocation = Exclude<DatabaseLocation, { readonly kind: 'postgres' }>;

interface SqliteOptions {
  readonly busyTimeoutMs?: Millis | undefined;
  readonly synchronous?: 'full' | 'normal' | undefined;
  readonly onFault?: OnFault | undefined;
}

/**
 * @throws DatabaseUnavailable if the folder cannot be created or written to, or the file is not a SQLite database;
 *   DatabaseFault if it is damaged
 */
export function openSqlite(location: SqliteLocation, options: SqliteOptions = {}): Database {
  const path = location.kind === 'memory' ? ':memory:' : location.path;
  try {
    if (location.kind === 'file') mkdirSync(dirname(location.path), { recursive: true });
    // Opening may block, because another process may be starting, recovering or closing. Later calls do not.
    const sqlite = new SqliteDatabase(path, { timeout: BUSY_TIMEOUT_MS });
    sqlite.pragma('foreign_keys = ON');
    sqlite.pragma(`cache_size = -${CACHE_KIB}`);
    sqlite.pragma(`synchronous = ${options.synchronous ?? 'full'}`);
    sqlite.pragma('journal_mode = WAL');
    if (sqlite.readonly) throw new Error('the file is read-only');
    sqlite.pragma('busy_timeout = 0');
    return new Kysely<Tables>({
      dialect: {
        createAdapter: () => new TransactionalAdapter(),
        createDriver: () => new PatientDriver(sqlite, options),
        createIntrospector: (db) => new SqliteIntrospector(db),
        createQueryCompiler: () => new SqliteQueryCompiler(),
      },
    });
  } catch (error) {
    const fault = withFault(error);
    // A file that was never a database is the wrong file, not a damaged one.
    const isDamaged = fault instanceof DatabaseFault && fault.problem === 'database_damaged';
    throw isDamaged && codeOf(error) !== 'SQLITE_NOTADB' ? fault : cannotOpen(path, error);
  }
}

function cannotOpen(path: string, cause: unknown): DatabaseUnavailable {
  const advice = 'give a path in a folder that this user may write to';
  return new DatabaseUnavailable(`cannot open ${path} (${reasonOf(cause)}); ${advice}`, cause);
}

/** SQLite can change tables within transactions, so migrations run in one. */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** Waits for other processes, and translates errors. */
class PatientDriver extends SqliteDriver {
  readonly #sqlite: SqliteDatabase.Database;
  readonly #options: SqliteOptions;
  #connection: DatabaseConnection | null = null;

  constructor(sqlite: SqliteDatabase.Database, options: SqliteOptions) {
    super({ database: withCache(sqlite) });
    this.#sqlite = sqlite;
    this.#options = options;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    this.#connection ??= this.#patient(await super.acquireConnection());
    return this.#connection;
  }

  /**
   * Takes the write lock at once. A plain `begin` takes it with the first write, which fails for good if another process has
   * written since the first read.
   */
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  /** A failed statement may have ended the transaction. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#sqlite.inTransaction) await super.rollbackTransaction(connection);
  }

  #patient(connection: DatabaseConnection): DatabaseConnection {
    const { busyTimeoutMs = BUSY_TIMEOUT_MS, onFault } = this.#options;
    return {
      async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
        const deadline = performance.now() + busyTimeoutMs;
        for (let pause = PAUSE_MS_FIRST; ; pause = Math.min(pause * 2, PAUSE_MS_MAX)) {
          try {
            return await connection.executeQuery<R>(query);
          } catch (error) {
            const found = withFault(error);
            if (found instanceof DatabaseFault) onFault?.(found.problem, found);
            if (!isBusy(error)) throw found;
            if (performance.now() + pause > deadline) throw new DatabaseBusy(error);
          }
          await sleep(pause);
        }
      },
      streamQuery: (query, chunkSize) => connection.streamQuery(query, chunkSize),
    };
  }
}

function isBusy(error: unknown): boolean {
  const code = codeOf(error);
  return code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED');
}

/** Keeps prepared statements, because preparing usually costs more than running. Evicts the oldest. */
function withCache(sqlite: SqliteDatabase.Database): Prepared {
  const statements = new Map<string, SqliteDatabase.Statement>();
  return {
    close: () => sqlite.close(),
    prepare(sql) {
      const known = statements.get(sql);
      if (known !== undefined) return known;
      const statement = sqlite.prepare(sql);
      const oldest = statements.size >= STATEMENTS_MAX ? statements.keys().next().value : undefined;
      if (oldest !== undefined) statements.delete(oldest);
      statements.set(sql, statement);
      return statement;
    },
  };
}
