/**
 * SQLite driver for Kysely with one connection for writing and one for reading.
 *
 * Writes and transactions queue; reads never wait for them. If another process holds the write lock, SQLite fails at
 * once and the attempt is repeated after a pause, so that the event loop is not blocked. After a time limit the write
 * fails with DatabaseBusy. A database in memory has one connection, so its reads queue too.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type SqliteDatabase from 'better-sqlite3';
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
  SelectQueryNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { Millis } from '#shared/clock.ts';
import { codeOf, DatabaseBusy, DatabaseFault, type OnFault, reasonOf, withFault } from './faults.ts';

interface SqliteHandles {
  readonly writer: SqliteDatabase.Database;
  /** Connection for reading. It is the same as the writer for a database in memory. */
  readonly reader: SqliteDatabase.Database;
}

/** How long a write may wait, for its turn and for other processes together. */
export const BUSY_TIMEOUT_MS: Millis = 5_000;
/** Limit of waiting writes. A request has at most one. */
const WAITING_MAX = 2_000;
const PAUSE_MS_FIRST: Millis = 1;
const PAUSE_MS_MAX: Millis = 50;
/** Prepared statements that each connection keeps. Lists of ids have a different text for each length. */
const STATEMENTS_MAX = 500;
/** Idle connection objects that are kept. Beyond that, new ones are created. */
const IDLE_MAX = 100;
/**
 * Takes the write lock at once. A plain `begin` takes it with the first write, which fails for good if another process
 * has written since the first read.
 */
const BEGIN = 'begin immediate';

type Statement = SqliteDatabase.Statement<unknown[]>;
type Prepare = (sql: string) => Statement;

/** SQLite can change tables within transactions, so migrations run in one. */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }

  /** Writes queue here. Kysely's own queue would also hold up reads. */
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

export function createSqliteDialect(
  handles: SqliteHandles,
  busyTimeoutMs = BUSY_TIMEOUT_MS,
  onFault: OnFault = () => undefined,
): Dialect {
  return {
    createAdapter: () => new TransactionalAdapter(),
    createDriver: () => createDriver(handles, busyTimeoutMs, onFault),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/** A connection for Kysely. It holds the write turn while a transaction is open. */
interface RoutedConnection extends DatabaseConnection {
  begin(): Promise<void>;
  /** Ends the transaction and passes the turn on. Does nothing without a transaction. */
  end(sql: 'commit' | 'rollback'): void;
}

function createDriver({ writer, reader }: SqliteHandles, busyTimeoutMs: Millis, onFault: OnFault): Driver {
  const isShared = writer === reader;
  const writes = cachedPrepare(writer);
  const reads = isShared ? writes : cachedPrepare(reader);
  const turns = createTurns(WAITING_MAX);

  const guarded = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      const found = withFault(error);
      if (found instanceof DatabaseFault) onFault(found.problem, found);
      throw found;
    }
  };
  const prepareWrite: Prepare = (sql) => guarded(() => writes(sql));
  const runWrite = <R>(sql: string, parameters: readonly unknown[]): QueryResult<R> =>
    guarded(() => run<R>(writes(sql), parameters));
  const runRead = <R>(sql: string, parameters: readonly unknown[]): QueryResult<R> =>
    guarded(() => run<R>(reads(sql), parameters));

  const connections = new WeakMap<DatabaseConnection, RoutedConnection>();
  /** Reused, because Kysely keeps all connections in a WeakSet, and thousands would prolong garbage collection. */
  const idle: RoutedConnection[] = [];
  const connect = (): RoutedConnection => {
    let release: (() => void) | null = null;
    const connection: RoutedConnection = {
      async executeQuery<R>({ sql, parameters, query }: CompiledQuery): Promise<QueryResult<R>> {
        if (release !== null) return runWrite<R>(sql, parameters);
        const deadline = performance.now() + busyTimeoutMs;
        const isRead = SelectQueryNode.is(query) || prepareWrite(sql).readonly;
        if (isRead && !isShared) return patiently(() => runRead<R>(sql, parameters), deadline);
        const done = await turns.take(deadline);
        try {
          return await patiently(() => runWrite<R>(sql, parameters), deadline);
        } finally {
          done();
        }
      },
      async *streamQuery<R>(compiled: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
        yield await connection.executeQuery<R>(compiled);
      },
      async begin() {
        const deadline = performance.now() + busyTimeoutMs;
        const done = await turns.take(deadline);
        try {
          await patiently(() => runWrite(BEGIN, []), deadline);
        } catch (error) {
          done();
          throw error;
        }
        release = done;
      },
      end(sql) {
        if (release === null) return;
        const done = release;
        release = null;
        try {
          // A failed statement may have ended the transaction.
          if (writer.inTransaction) runWrite(sql, []);
        } finally {
          // If the commit fails, do not leave the transaction open for the next writer.
          if (writer.inTransaction) runWrite('rollback', []);
          done();
        }
      },
    };
    connections.set(connection, connection);
    return connection;
  };
  const routed = (connection: DatabaseConnection): RoutedConnection => {
    const known = connections.get(connection);
    if (known === undefined) throw new Error('This connection belongs to another driver');
    return known;
  };

  return {
    async init() {},
    acquireConnection: async () => idle.pop() ?? connect(),
    beginTransaction: (connection) => routed(connection).begin(),
    commitTransaction: async (connection) => routed(connection).end('commit'),
    rollbackTransaction: async (connection) => routed(connection).end('rollback'),
    async releaseConnection(connection) {
      const released = routed(connection);
      released.end('rollback');
      if (idle.length < IDLE_MAX) idle.push(released);
    },
    async destroy() {
      turns.close();
      writer.close();
      if (!isShared) reader.close();
    },
  };
}

function run<R>(statement: Statement, parameters: readonly unknown[]): QueryResult<R> {
  if (statement.reader) return { rows: statement.all(...parameters) as R[] };
  const { changes, lastInsertRowid } = statement.run(...parameters);
  return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
}

/** Retries while another process has the lock, with pauses for the event loop. */
async function patiently<T>(attempt: () => T, deadline: Millis): Promise<T> {
  for (let pause = PAUSE_MS_FIRST; ; pause = Math.min(pause * 2, PAUSE_MS_MAX)) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (performance.now() + pause > deadline) throw new DatabaseBusy(error);
    }
    await sleep(pause);
  }
}

function isBusy(error: unknown): boolean {
  const code = codeOf(error);
  return code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED');
}

interface Turns {
  /** @returns function that ends the turn @throws DatabaseBusy if it takes too long or too many wait */
  take(deadline: Millis): Promise<() => void>;
  close(): void;
}

/** Lets one writer work at a time, in order of arrival. */
function createTurns(waitingMax: number): Turns {
  const waiting = new Set<(isMine: boolean) => void>();
  let isTaken = false;

  const end = (): void => {
    const [next] = waiting;
    if (next === undefined) isTaken = false;
    else next(true);
  };
  /** The returned function may be called again without effect. */
  const newTurn = (): (() => void) => {
    let isEnded = false;
    return () => {
      if (!isEnded) end();
      isEnded = true;
    };
  };

  return {
    async take(deadline) {
      if (!isTaken) {
        isTaken = true;
        return newTurn();
      }
      if (waiting.size >= waitingMax) throw new DatabaseBusy();
      const isMine = await new Promise<boolean>((resolve) => {
        const settle = (mine: boolean): void => {
          clearTimeout(timer);
          waiting.delete(settle);
          resolve(mine);
        };
        const timer = setTimeout(settle, Math.max(deadline - performance.now(), 0), false);
        waiting.add(settle);
      });
      if (!isMine) throw new DatabaseBusy();
      return newTurn();
    },
    close() {
      for (const settle of waiting) settle(false);
    },
  };
}

/** Caches prepared statements, because preparing usually costs more than running. Evicts the oldest. */
function cachedPrepare(sqlite: SqliteDatabase.Database): Prepare {
  const statements = new Map<string, Statement>();
  return (sql) => {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const statement = sqlite.prepare<unknown[]>(sql);
    const oldest = statements.size >= STATEMENTS_MAX ? statements.keys().next().value : undefined;
    if (oldest !== undefined) statements.delete(oldest);
    statements.set(sql, statement);
    return statement;
  };
}

/** Returns the columns of the unique index that refused a row, in order, each `table.column`; null for other errors. */
export function violatedIndex(error: unknown): readonly string[] | null {
  const code = codeOf(error);
  if (code !== 'SQLITE_CONSTRAINT_UNIQUE' && code !== 'SQLITE_CONSTRAINT_PRIMARYKEY') return null;
  const message = reasonOf(error);
  return message.slice(message.lastIndexOf(': ') + 2).split(', ');
}
