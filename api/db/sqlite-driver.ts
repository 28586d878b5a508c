/**
 * SQLite behind Kysely: one connection that writes, and one that reads.
 *
 * Writes and transactions take their turn; reads never wait for them. When another process holds the write lock, SQLite
 * says so at once and the attempt is repeated after a pause, so a wait costs time, not the event loop. It ends with
 * DatabaseBusy. A database in memory has one connection, so there reads take their turn as well.
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
import { DatabaseBusy, DatabaseFault, type OnFault, withFault } from './faults.ts';

interface SqliteHandles {
  readonly writer: SqliteDatabase.Database;
  /** The same as the writer for a database in memory. */
  readonly reader: SqliteDatabase.Database;
}

/** How long a write waits, for its turn and for another process together. */
export const BUSY_TIMEOUT_MS: Millis = 5_000;
/** Writes that may wait for their turn; a request has one at a time. */
const WAITING_MAX = 2_000;
const PAUSE_MS_FIRST: Millis = 1;
const PAUSE_MS_MAX: Millis = 50;
/** Prepared statements kept for reuse, of each connection. Lists of ids give each length its own text. */
const STATEMENTS_MAX = 500;
/** Connections kept for the next query. Whatever is open at once beyond them is made anew. */
const IDLE_MAX = 100;
/**
 * Takes the lock for writing at once. SQLite's plain `begin` takes it with the first write, and refuses when another
 * process wrote since the first read: no waiting helps then.
 */
const BEGIN = 'begin immediate';

type Statement = SqliteDatabase.Statement<unknown[]>;
type Prepare = (sql: string) => Statement;

/** SQLite changes tables inside of transactions, so migrations run in one. */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }

  /** Turns are taken here, not in Kysely, which lets reads wait as well. */
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

/** A connection as Kysely sees it; it holds the turn for writing while a transaction is open. */
interface RoutedConnection extends DatabaseConnection {
  begin(): Promise<void>;
  /** Ends the transaction and passes the turn on. Harmless without a transaction. */
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
  /** Kysely remembers each that it sees in a weak set: thousands of them would make the garbage collector's pauses long. */
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
          // A statement that failed may have ended the transaction already.
          if (writer.inTransaction) runWrite(sql, []);
        } finally {
          // One that cannot be committed must not be found open by the next.
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
    if (known === undefined) throw new Error('This connection is not of this driver');
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

/** Repeats what the lock of another process refuses, with pauses in which the event loop goes on. */
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
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED');
}

interface Turns {
  /** @returns ends the turn @throws DatabaseBusy when it does not come in time, or too many wait */
  take(deadline: Millis): Promise<() => void>;
  /** Whoever waits is refused. */
  close(): void;
}

/** One writer at a time, in the order in which they came. */
function createTurns(waitingMax: number): Turns {
  const waiting = new Set<(isMine: boolean) => void>();
  let isTaken = false;

  const end = (): void => {
    const [next] = waiting;
    if (next === undefined) isTaken = false;
    else next(true);
  };
  /** Harmless when it is called again. */
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

/** Preparing costs more than running for most of our statements, so the prepared ones are kept, oldest out first. */
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

/** The columns of the unique index that refused a row, `table.column` in its order; null when none did. */
export function violatedIndex(error: unknown): readonly string[] | null {
  if (!(error instanceof Error) || !('code' in error)) return null;
  if (error.code !== 'SQLITE_CONSTRAINT_UNIQUE' && error.code !== 'SQLITE_CONSTRAINT_PRIMARYKEY') return null;
  return error.message.slice(error.message.lastIndexOf(': ') + 2).split(', ');
}
