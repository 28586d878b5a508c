/**
 * PostgreSQL behind Kysely's dialect, with a pool of node-postgres, which only this file knows and loads with the first
 * connection.
 *
 * Every wait has a limit: for a connection, for a lock, for a statement, and for a server that does not answer at all.
 * After an outage the next statement connects again.
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
import { codeOf, DatabaseBusy, DatabaseFault, type OnTrouble, translated } from './faults.ts';
import type { PostgresLocation } from './location.ts';
import type { Tables } from './schema.ts';

/** The address may set others. */
const DEFAULTS = {
  application_name: 'floodgate',
  connectionTimeoutMillis: 5_000,
  keepAlive: true,
  statement_timeout: 30_000,
  lock_timeout: 5_000,
  // The server ends a transaction that was idle for this long, because others may wait for it.
  idle_in_transaction_session_timeout: 60_000,
} satisfies pg.ClientConfig;
/** If the server does not end a statement itself so long after its timeout, the connection is broken. */
const GRACE_MS: Millis = 2_000;
/** The maximum number of statements that wait for a connection. */
const WAITING_MAX = 2_000;

export class PostgresKysely extends Kysely<Tables> {
  constructor(location: PostgresLocation, onTrouble: OnTrouble) {
    super({
      dialect: new PostgresDialect({ pool: () => createPool(location, onTrouble) }),
      // Accept `in ()`, as SQLite does.
      plugins: [new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression })],
    });
  }

  /** Repeats transactions that the server undid because of others. */
  override transaction() {
    const builder = super.transaction();
    const once = builder.execute.bind(builder);
    builder.execute = (work) => againAfterConflict(() => once(work));
    return builder;
  }
}

/** Values are what SQLite returns: numbers for bigint and numeric, 1 for true, and text for everything else. */
const readers: Readonly<Record<number, (text: string) => unknown>> = {
  20: Number,
  1700: Number,
  16: (text) => (text === 't' ? 1 : 0),
};

async function createPool(
  { config, poolSize }: PostgresLocation,
  onTrouble: OnTrouble,
): Promise<PostgresPool> {
  const { default: pg } = await import('pg');
  const settings = { ...DEFAULTS, ...config };
  const pool = new pg.Pool({
    ...settings,
    max: poolSize,
    query_timeout: Number(settings.statement_timeout) + GRACE_MS,
    types: { getTypeParser: (oid: number) => readers[oid] ?? pg.types.getTypeParser(oid) },
  });
  const nameOf = createNames();
  const told = (error: unknown): unknown => {
    const found = translated(error);
    if (found instanceof DatabaseFault || (found instanceof DatabaseBusy && found.isAway)) onTrouble(found);
    return found;
  };
  // Without listeners an error would end the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return {
    options: pool.options,
    async connect() {
      if (pool.waitingCount >= WAITING_MAX) throw new DatabaseBusy('too many wait for a connection');
      try {
        return guarded(await pool.connect(), nameOf, told);
      } catch (error) {
        throw told(error);
      }
    },
    end: () => pool.end(),
  };
}

/** Wraps a pooled connection for one statement or transaction. */
function guarded(
  client: pg.PoolClient,
  nameOf: (text: string) => string | undefined,
  told: (error: unknown) => unknown,
): PostgresPoolClient {
  let isLost = false;
  let isOutdated = false;
  const query = async <R>(text: string, values: readonly unknown[]): Promise<PostgresQueryResult<R>> => {
    // A rollback would wait for its own timeout.
    if (isLost) throw new DatabaseBusy('the connection was lost', true);
    // Outside a transaction, a statement is its own transaction.
    const isAlone = client.getTransactionStatus() === 'I';
    const run = async () => {
      // A connection whose prepared statements are out of date prepares no others.
      const name = isOutdated ? undefined : nameOf(text);
      const { command, rowCount, rows } = await client
        .query({ ...(name === undefined ? {} : { name }), text, values: [...values] })
        .catch((error: unknown) => {
          const found = translated(error);
          isLost ||= found instanceof DatabaseBusy && found.isAway;
          isOutdated ||= isStale(error);
          throw error;
        });
      // Kysely only names the commands that count rows.
      return { command: command as PostgresQueryResult<R>['command'], rowCount: rowCount ?? 0, rows };
    };
    try {
      return await (isAlone ? againAfterConflict(run) : run());
    } catch (error) {
      throw told(error);
    }
  };
  return {
    // Rows are read page by page, so nothing passes a cursor.
    query: query as PostgresPoolClient['query'],
    release: (isDiscarded = false) => client.release(isDiscarded || isLost || isOutdated),
  };
}

/** Each prepared statement takes about 20 KB of a connection. The client routes need about twenty. */
const PREPARED_MAX = 100;
const ASKED_MIN = 10;
/** Limit of texts whose use is counted. */
const COUNTED_MAX = 1_000;

/**
 * Names statements that are frequent, which the server then keeps prepared. A response costs it 0.28 ms instead of 0.50,
 * and this process 0.60 instead of 0.66. Lists of different lengths are different texts, so not all are named.
 */
function createNames(): (text: string) => string | undefined {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  return (text) => {
    const known = names.get(text);
    if (known !== undefined || names.size >= PREPARED_MAX) return known;
    if (counts.size >= COUNTED_MAX) counts.clear();
    const count = (counts.get(text) ?? 0) + 1;
    counts.set(text, count);
    if (count >= ASKED_MIN) names.set(text, `s${names.size}`);
    return undefined;
  };
}

const CONFLICT_ATTEMPTS_MAX = 6;
const CONFLICT_PAUSE_MS_FIRST: Millis = 5;
/**
 * Rolled back because of another transaction; a retry helps. Serialization failure, deadlock, or a referenced row that was
 * deleted in the meantime, which the retry will not find.
 */
const CONFLICT = /^(40001|40P01|23503)$/;

/** Whether the tables have changed since the statement was prepared, so that its result has other columns. */
function isStale(error: unknown): boolean {
  return (
    codeOf(error) === '0A000' &&
    error instanceof Error &&
    Reflect.get(error, 'routine') === 'RevalidateCachedQuery'
  );
}

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
      if (!CONFLICT.test(codeOf(error)) && !isStale(error)) throw error;
      if (attempt === CONFLICT_ATTEMPTS_MAX) throw new DatabaseBusy(error);
    }
    await sleep(pause);
  }
}
