/**
 * PostgreSQL behind Kysely: a pool of connections, with our own errors.
 *
 * Every wait has a limit: for a connection, for a lock, for a statement, and for a server that does not answer at all.
 * After an outage the next statement connects again. A connection that breaks while it is idle is dropped without an
 * error. Only this file knows node-postgres, and loads it with the first connection.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import {
  HandleEmptyInListsPlugin,
  Kysely,
  PostgresDialect,
  type PostgresPool,
  type PostgresPoolClient,
  type PostgresQueryResult,
  replaceWithNoncontingentExpression,
} from 'kysely';
import type pg from 'pg';
import type { Millis } from '#shared/clock.ts';
import { readRegularFile } from '#shared/regular-file.ts';
import { DatabaseBusy, DatabaseFault, DatabaseUnavailable, type OnFault, reasonOf } from './faults.ts';
import type { PostgresLocation, PostgresTls } from './postgres-address.ts';
import { DatabaseAway, isBroken, isConflict, isStale, translated } from './postgres-errors.ts';
import { createPreparedStatements, type PreparedStatements } from './postgres-prepared.ts';
import type { Database, Tables } from './schema.ts';

/** Called when the server cannot be reached, and with null when it can be reached again. */
export type OnAway = (away: DatabaseAway | null) => void;

export interface PostgresOptions {
  /** The maximum number of connections of this process. */
  readonly poolSize?: number;
  /** How long a statement may take. 0 for no limit. */
  readonly statementTimeoutMs?: Millis;
  readonly connectTimeoutMs?: Millis;
  readonly lockTimeoutMs?: Millis;
  /** With `normal`, the server acknowledges commits before they are on its disk. */
  readonly synchronous?: 'full' | 'normal';
  readonly onFault?: OnFault | undefined;
  readonly onAway?: OnAway | undefined;
}

const POOL_SIZE = 10;
const STATEMENT_TIMEOUT_MS: Millis = 30_000;
const WAIT_MS: Millis = 5_000;
/** Migrations wait longer for a lock, because requests of older processes may hold it. */
const MIGRATION_LOCK_TIMEOUT_MS: Millis = 60_000;
/** The server ends a transaction that was idle for this long, because others may wait for it. */
const IDLE_IN_TRANSACTION_MS: Millis = 60_000;
/**
 * The server normally ends a statement itself. If it does not answer for this much longer, the connection is broken.
 */
const GRACE_MS: Millis = 2_000;
const IDLE_MS: Millis = 30_000;
/** The maximum number of statements that wait for a connection. */
const WAITING_MAX = 2_000;

export class PostgresKysely extends Kysely<Tables> {
  readonly #location: PostgresLocation;
  readonly #options: PostgresOptions;

  constructor(location: PostgresLocation, options: PostgresOptions = {}) {
    const connection = connectionOptions(location, options);
    super({
      dialect: new PostgresDialect({ pool: () => createPool(connection, options) }),
      // Accept `in ()`, as SQLite does.
      plugins: [new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression })],
    });
    this.#location = location;
    this.#options = options;
  }

  /** Repeats transactions that the server undid because of others. */
  override transaction() {
    const builder = super.transaction();
    const once = builder.execute.bind(builder);
    builder.execute = (work) => againAfterConflict(() => once(work));
    return builder;
  }

  /** Opens one connection to the same database without a limit on statements. The caller destroys it. */
  openForMigrations(): Database {
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
  // Without a listener an error would end the process.
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
    // node-postgres looks an empty string up in the environment, but not a function.
    password: location.password,
    application_name: location.applicationName,
    options: serverOptions(location, options),
    ssl: tlsOptions(location.tls),
    connectionTimeoutMillis: options.connectTimeoutMs ?? WAIT_MS,
    keepAlive: true,
  };
}

/** Wraps a pooled connection for one statement or transaction. */
function guarded(
  client: pg.PoolClient,
  prepared: PreparedStatements,
  told: (error: unknown) => unknown,
): PostgresPoolClient {
  let isLost = false;
  const run = async <R>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>> => {
    // Without parameters a statement takes one message, and has almost no plan.
    const name = parameters.length === 0 ? null : prepared.nameOf(sql);
    try {
      const { command, rowCount, rows } = await client.query({
        ...(name === null ? {} : { name }),
        text: sql,
        values: [...parameters],
      });
      // Kysely only names the commands that count rows.
      return { command: command as PostgresQueryResult<R>['command'], rowCount: rowCount ?? 0, rows };
    } catch (error) {
      isLost ||= isBroken(error);
      if (name !== null && isStale(error)) prepared.renew(name);
      throw error;
    }
  };
  const ask = async <R>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>> => {
    if (isLost) throw new DatabaseAway(new Error('the connection was lost'));
    // Outside a transaction, a statement is its own transaction.
    const isAlone = client.getTransactionStatus() === 'I';
    try {
      return await (isAlone ? againAfterConflict(() => run<R>(sql, parameters)) : run<R>(sql, parameters));
    } catch (error) {
      throw told(error);
    }
  };
  return {
    // Rows are read page by page, so nothing passes a cursor.
    query: ask as PostgresPoolClient['query'],
    release: (isDiscarded = false) => client.release(isDiscarded || isLost),
  };
}

function serverOptions({ schema }: PostgresLocation, { synchronous = 'full' }: PostgresOptions): string {
  const settings = [
    `synchronous_commit=${synchronous === 'full' ? 'on' : 'off'}`,
    // Without quotes the server would change it to lower case.
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
    return readRegularFile(path);
  } catch (error) {
    throw new DatabaseUnavailable(
      `${name} cannot be read (${reasonOf(error)}); give the path of a PEM file`,
      error,
    );
  }
}

/** The types of columns. Values are what SQLite returns: numbers, 1 for true, and text for everything else. */
const INT8 = 20;
const NUMERIC = 1700;
const BOOLEAN = 16;

function typeParserOf(oid: number, types: typeof pg.types): (text: string) => unknown {
  if (oid === INT8 || oid === NUMERIC) return Number;
  if (oid === BOOLEAN) return (text) => (text === 't' ? 1 : 0);
  const known: (text: string) => unknown = types.getTypeParser(oid);
  return known;
}

const CONFLICT_ATTEMPTS_MAX = 6;
const CONFLICT_PAUSE_MS_FIRST: Millis = 5;

/**
 * Repeats work that the server undid because another transaction was in its way.
 *
 * @param work must have no effects outside the database, unless they may happen twice
 * @throws DatabaseBusy if every attempt was in conflict
 */
async function againAfterConflict<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1, pause = CONFLICT_PAUSE_MS_FIRST; ; attempt += 1, pause *= 2) {
    try {
      return await work();
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (attempt === CONFLICT_ATTEMPTS_MAX)
        throw new DatabaseBusy(error, 'Others keep changing the same rows');
    }
    await sleep(pause);
  }
}
