/**
 * PostgreSQL behind Kysely: a pool of connections, whose failures are told in our words.
 *
 * Every wait has an end: for a connection, for a lock, for a statement, and for a server that does not answer at all. A
 * server that was away is found again by the next statement. A connection that dies while nobody uses it is dropped;
 * nobody hears of it. Only this file knows node-postgres, and loads it with the first connection.
 */
import { readFileSync } from 'node:fs';
import {
  HandleEmptyInListsPlugin,
  Kysely,
  type PostgresCursor,
  PostgresDialect,
  type PostgresPool,
  type PostgresPoolClient,
  type PostgresQueryResult,
  replaceWithNoncontingentExpression,
} from 'kysely';
import type pg from 'pg';
import type { Millis } from '#shared/clock.ts';
import { againAfterConflict } from './again.ts';
import { DatabaseBusy, DatabaseFault, DatabaseUnavailable, type OnFault, reasonOf } from './faults.ts';
import type { PostgresLocation, PostgresTls } from './postgres-address.ts';
import { DatabaseAway, isBroken, isConflict, isStale, translated } from './postgres-errors.ts';
import { createPreparedStatements, type PreparedStatements } from './postgres-prepared.ts';
import type { Database } from './schema.ts';

/** Is told when the server is away, and with null when it is back. */
export type OnAway = (away: DatabaseAway | null) => void;

export interface PostgresOptions {
  /** Connections at most, of this process. */
  readonly poolSize?: number;
  /** Of one statement; 0: it may take as long as it needs. */
  readonly statementTimeoutMs?: Millis;
  /** Until there is a connection. */
  readonly connectTimeoutMs?: Millis;
  /** Until a lock of somebody else's is free. */
  readonly lockTimeoutMs?: Millis;
  /** `normal`: the server acknowledges what is not on its disk yet. */
  readonly synchronous?: 'full' | 'normal';
  readonly onFault?: OnFault | undefined;
  readonly onAway?: OnAway | undefined;
}

const POOL_SIZE = 10;
const STATEMENT_TIMEOUT_MS: Millis = 30_000;
const WAIT_MS: Millis = 5_000;
/** Building an index takes long; waiting for the requests of older processes should not. */
const MIGRATION_LOCK_TIMEOUT_MS: Millis = 60_000;
/** A transaction whose process says nothing for so long holds up others. */
const IDLE_IN_TRANSACTION_MS: Millis = 60_000;
/** The server ends a statement by itself. One that is not heard of then is gone. */
const GRACE_MS: Millis = 2_000;
const IDLE_MS: Millis = 30_000;
/** Requests that may wait for a connection. */
const WAITING_MAX = 2_000;

/** The server is first asked by the first statement. */
export class PostgresKysely extends Kysely<Database> {
  readonly #location: PostgresLocation;
  readonly #options: PostgresOptions;

  /** @throws DatabaseUnavailable when a certificate cannot be read */
  constructor(location: PostgresLocation, options: PostgresOptions = {}) {
    const connection = connectionOptions(location, options);
    super({
      dialect: new PostgresDialect({ pool: () => createPool(connection, options) }),
      // SQLite knows `in ()`.
      plugins: [new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression })],
    });
    this.#location = location;
    this.#options = options;
  }

  /** Transactions that were undone because of others are done again. */
  override transaction() {
    const builder = super.transaction();
    const once = builder.execute.bind(builder);
    builder.execute = (work) => againAfterConflict(() => once(work), isConflict);
    return builder;
  }

  /** One connection to the same database, for statements that may take as long as they need. The caller destroys it. */
  openForMigrations(): Kysely<Database> {
    const limits = { poolSize: 1, statementTimeoutMs: 0, lockTimeoutMs: MIGRATION_LOCK_TIMEOUT_MS };
    return new PostgresKysely(this.#location, { ...this.#options, ...limits });
  }
}

async function createPool(connection: pg.ClientConfig, options: PostgresOptions): Promise<PostgresPool> {
  const { default: pg } = await import('pg');
  const { statementTimeoutMs = STATEMENT_TIMEOUT_MS, onFault, onAway } = options;
  const pool = new pg.Pool({
    ...connection,
    max: options.poolSize ?? POOL_SIZE,
    idleTimeoutMillis: IDLE_MS,
    statement_timeout: statementTimeoutMs,
    ...(statementTimeoutMs === 0 ? {} : { query_timeout: statementTimeoutMs + GRACE_MS }),
    lock_timeout: options.lockTimeoutMs ?? WAIT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    types: { getTypeParser: (oid) => typeParserOf(oid, pg.types) },
  });
  const prepared = createPreparedStatements();
  let isAway = false;
  const told = (error: unknown): unknown => {
    const found = translated(error);
    if (found instanceof DatabaseFault) onFault?.(found.problem, found);
    if (found instanceof DatabaseAway) {
      isAway = true;
      onAway?.(found);
    }
    return found;
  };
  // An error that nobody listens to would end the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
    if (isAway) onAway?.(null);
    isAway = false;
  });
  return {
    options: pool.options,
    async connect() {
      if (pool.waitingCount >= WAITING_MAX)
        throw new DatabaseBusy(undefined, 'Too many wait for the database');
      try {
        return guarded(await pool.connect(), prepared, told);
      } catch (error) {
        throw told(error);
      }
    },
    end: () => pool.end(),
  };
}

function connectionOptions(location: PostgresLocation, options: PostgresOptions): pg.ClientConfig {
  return {
    host: location.host,
    port: location.port,
    database: location.database,
    user: location.user,
    // A function, so that an empty one is not looked up in the environment.
    password: location.password,
    application_name: location.applicationName,
    options: serverOptions(location, options),
    ssl: tlsOptions(location.tls),
    connectionTimeoutMillis: options.connectTimeoutMs ?? WAIT_MS,
    keepAlive: true,
  };
}

/** A connection beside the pool, to listen on. The caller connects it, hears its errors and ends it. */
export async function openListening(location: PostgresLocation): Promise<pg.Client> {
  const { default: pg } = await import('pg');
  return new pg.Client({ ...connectionOptions(location, {}), query_timeout: WAIT_MS });
}

/** A connection for one statement or transaction. */
function guarded(
  client: pg.PoolClient,
  prepared: PreparedStatements,
  told: (error: unknown) => unknown,
): PostgresPoolClient {
  let isLost = false;
  const run = async <R>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>> => {
    // Without parameters a statement takes one message, and there is next to nothing to plan.
    const name = parameters.length === 0 ? null : prepared.nameOf(sql);
    try {
      const { command, rowCount, rows } = await client.query({
        ...(name === null ? {} : { name }),
        text: sql,
        values: [...parameters],
      });
      // The names of commands that Kysely knows are those that count rows.
      return { command: command as PostgresQueryResult<R>['command'], rowCount: rowCount ?? 0, rows };
    } catch (error) {
      isLost ||= isBroken(error);
      if (name !== null && isStale(error)) prepared.renew(name);
      throw error;
    }
  };
  function query<R>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>>;
  function query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>;
  function query<R>(
    sql: string | PostgresCursor<R>,
    parameters: readonly unknown[] = [],
  ): Promise<PostgresQueryResult<R>> | PostgresCursor<R> {
    if (typeof sql !== 'string') throw new Error('Rows are read page by page, not streamed');
    return ask<R>(sql, parameters);
  }
  const ask = async <R>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>> => {
    if (isLost) throw new DatabaseAway(new Error('the connection was lost'));
    // Alone, a statement is a transaction of its own.
    const isAlone = client.getTransactionStatus() === 'I';
    try {
      return await (isAlone
        ? againAfterConflict(() => run<R>(sql, parameters), isConflict)
        : run<R>(sql, parameters));
    } catch (error) {
      throw told(error);
    }
  };
  return { query, release: (isDiscarded = false) => client.release(isDiscarded || isLost) };
}

function serverOptions({ schema }: PostgresLocation, { synchronous = 'full' }: PostgresOptions): string {
  const settings = [
    `synchronous_commit=${synchronous === 'full' ? 'on' : 'off'}`,
    // Quoted, since without quotes it would be lower-cased.
    ...(schema === null ? [] : [`search_path="${schema}"`]),
  ];
  return settings.map((setting) => `-c ${setting}`).join(' ');
}

function tlsOptions(tls: PostgresTls): pg.PoolConfig['ssl'] {
  if (tls.kind === 'off') return false;
  const { rootCertificate, certificate, key } = tls;
  return {
    rejectUnauthorized: tls.checks !== 'nobody',
    ...(tls.checks === 'authority' ? { checkServerIdentity: () => undefined } : {}),
    ...(rootCertificate === null ? {} : { ca: read('sslrootcert', rootCertificate) }),
    ...(certificate === null ? {} : { cert: read('sslcert', certificate) }),
    ...(key === null ? {} : { key: read('sslkey', key) }),
  };
}

function read(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new DatabaseUnavailable(
      `${name} cannot be read (${reasonOf(error)}); give the path of a PEM file`,
      error,
    );
  }
}

/** As SQLite has them: numbers are numbers, what is true is 1, and everything else is text. */
const INT8 = 20;
const NUMERIC = 1700;
const BOOLEAN = 16;

function typeParserOf(oid: number, types: typeof pg.types): (text: string) => unknown {
  if (oid === INT8 || oid === NUMERIC) return Number;
  if (oid === BOOLEAN) return (text) => (text === 't' ? 1 : 0);
  const known: (text: string) => unknown = types.getTypeParser(oid);
  return known;
}
