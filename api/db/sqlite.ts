/**
 * Opens a SQLite file with Kysely's own driver: one connection, on which statements and transactions take turns. Only this
 * file knows better-sqlite3.
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
  type QueryResult,
  SqliteAdapter,
  SqliteDialect,
  SqliteDriver,
} from 'kysely';
import type { Millis } from '#shared/clock.ts';
import {
  codeOf,
  DatabaseBusy,
  DatabaseFault,
  DatabaseUnavailable,
  type OnTrouble,
  translated,
} from './faults.ts';
import type { Database, Tables } from './schema.ts';

/** SQLite's default of 2 MB is too small for the upper index levels of a million responses. */
const CACHE_KIB = 65_536;
/** How long a write may wait for other processes. */
const BUSY_TIMEOUT_MS: Millis = 5_000;
const PAUSE_MS: Millis = 10;
/** Prepared statements that are kept. Lists of ids have a different text for each length. */
const STATEMENTS_MAX = 500;

/**
 * @param path `:memory:`, or the absolute path of a file
 * @throws DatabaseUnavailable if the folder cannot be created or written to, or the file is not a SQLite database;
 *   DatabaseFault if it is damaged
 */
export function openSqlite(path: string, onTrouble: OnTrouble, busyTimeoutMs = BUSY_TIMEOUT_MS): Database {
  try {
    mkdirSync(dirname(path), { recursive: true });
    // Opening may block, because another process may be starting, recovering or closing. Later calls do not.
    const sqlite = new SqliteDatabase(path, { timeout: BUSY_TIMEOUT_MS });
    sqlite.pragma('foreign_keys = ON');
    sqlite.pragma(`cache_size = -${CACHE_KIB}`);
    sqlite.pragma('synchronous = full');
    useWriteAheadLog(sqlite);
    if (sqlite.readonly) throw new Error('the file is read-only');
    sqlite.pragma('busy_timeout = 0');
    const dialect = new SqliteDialect({ database: sqlite });
    return new Kysely<Tables>({
      dialect: {
        createAdapter: () => new TransactionalAdapter(),
        createDriver: () => new PatientDriver(sqlite, onTrouble, busyTimeoutMs),
        createIntrospector: (db) => dialect.createIntrospector(db),
        createQueryCompiler: () => dialect.createQueryCompiler(),
      },
    });
  } catch (error) {
    const fault = translated(error);
    // A file that was never a database is the wrong file, not a damaged one.
    const isDamaged = fault instanceof DatabaseFault && fault.problem === 'database_damaged';
    if (isDamaged && codeOf(error) !== 'SQLITE_NOTADB') throw fault;
    throw new DatabaseUnavailable(
      `cannot open ${path}; give a path in a folder that this user may write to`,
      error,
    );
  }
}

/** While another process creates the file, SQLite refuses this at once, without the wait of other statements. */
function useWriteAheadLog(sqlite: SqliteDatabase.Database): void {
  const end = performance.now() + BUSY_TIMEOUT_MS;
  for (;;)
    try {
      sqlite.pragma('journal_mode = WAL');
      return;
    } catch (error) {
      if (!codeOf(error).startsWith('SQLITE_BUSY') || performance.now() > end) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    }
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
  readonly #onTrouble: OnTrouble;
  readonly #busyTimeoutMs: Millis;

  constructor(sqlite: SqliteDatabase.Database, onTrouble: OnTrouble, busyTimeoutMs: Millis) {
    super({ database: { close: () => sqlite.close(), prepare: preparing(sqlite) } });
    this.#sqlite = sqlite;
    this.#onTrouble = onTrouble;
    this.#busyTimeoutMs = busyTimeoutMs;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    const connection = await super.acquireConnection();
    return {
      executeQuery: (query) => this.#execute(connection, query),
      streamQuery: (query, chunkSize) => connection.streamQuery(query, chunkSize),
    };
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

  async #execute<R>(connection: DatabaseConnection, query: CompiledQuery): Promise<QueryResult<R>> {
    const deadline = performance.now() + this.#busyTimeoutMs;
    for (;;) {
      try {
        return await connection.executeQuery<R>(query);
      } catch (error) {
        const found = translated(error);
        if (found instanceof DatabaseFault) this.#onTrouble(found);
        if (!(found instanceof DatabaseBusy) || performance.now() > deadline) throw found;
      }
      await sleep(PAUSE_MS);
    }
  }
}

/** Keeps prepared statements. Without, a response costs a third more CPU. Evicts the oldest. */
function preparing(sqlite: SqliteDatabase.Database): (sql: string) => SqliteDatabase.Statement {
  const statements = new Map<string, SqliteDatabase.Statement>();
  return (sql) => {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const statement = sqlite.prepare(sql);
    const oldest = statements.size >= STATEMENTS_MAX ? statements.keys().next().value : undefined;
    if (oldest !== undefined) statements.delete(oldest);
    statements.set(sql, statement);
    return statement;
  };
}
