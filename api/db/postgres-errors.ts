/**
 * Translates errors of PostgreSQL and node-postgres (faults.ts): codes of the server (SQLSTATE), codes of sockets, and
 * messages of node-postgres, which has no codes.
 */

import { codeOf, DatabaseBusy, DatabaseFault, type DatabaseProblem, reasonOf } from './faults.ts';

/** The server is unreachable or accepts no more connections. */
export class DatabaseAway extends DatabaseBusy {
  constructor(cause: unknown) {
    super(cause, `The database cannot be reached (${reasonOf(cause)})`);
    this.name = 'DatabaseAway';
  }
}

const advice: Readonly<Record<DatabaseProblem, string>> = {
  database_full:
    'DATABASE_URL: the server of the database has no space left; free some on its disk; the API recovers by itself if it still runs',
  database_damaged:
    'DATABASE_URL: the database is damaged; stop the service, look at the log of the server, and restore a backup',
  database_unusable:
    'DATABASE_URL: the database cannot be read or written; look at the address, and at the rights of its user',
};

/**
 * Connection errors (class 08), server stopping or starting (57P01 to 57P03), too many connections (53300), session
 * ended because of an idle transaction (25P03).
 */
const AWAY =
  /^(08...|57P0[1-5]|53300|25P03|ECONN\w+|E(PIPE|TIMEDOUT|NOENT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN))$/;
const AWAY_SENTENCES =
  /^(Connection terminated|Client has encountered a connection error|timeout expired|Client was closed|Cannot use a pool)/;
/** Message of node-postgres: all connections of the pool are in use. */
const NO_CONNECTION = 'timeout exceeded when trying to connect';
const NO_ANSWER = 'Query read timeout';
/** A statement or lock took too long (57014, 55P03), or the server lacks a resource (53...). */
const BUSY = /^(57014|55P03|53...)$/;
/**
 * Rolled back because of another transaction; a retry helps. Serialization failure (40001), deadlock (40P01), or a
 * referenced row that was deleted in the meantime (23503), which the retry will not find.
 */
const CONFLICT = /^(40001|40P01|23503)$/;
/** The server's function that checks prepared plans. Its code 0A000 alone means any unsupported feature. */
const PLAN_CHECK = 'RevalidateCachedQuery';

/** Whether another transaction was in the way. Then the same work succeeds when it is repeated. */
export function isConflict(error: unknown): boolean {
  return CONFLICT.test(codeOf(error)) || isStale(error);
}

/** Whether the tables have changed since the statement was prepared, so that its result has other columns. */
export function isStale(error: unknown): boolean {
  return codeOf(error) === '0A000' && error instanceof Error && Reflect.get(error, 'routine') === PLAN_CHECK;
}

/** Whether the connection cannot be used any more. */
export function isBroken(error: unknown): boolean {
  return isAway(error) || reasonOf(error) === NO_ANSWER;
}

function isAway(error: unknown): boolean {
  return AWAY.test(codeOf(error)) || AWAY_SENTENCES.test(reasonOf(error));
}

export function translated(error: unknown): unknown {
  if (isAway(error)) return new DatabaseAway(error);
  const code = codeOf(error);
  const reason = reasonOf(error);
  if (reason === NO_CONNECTION) return new DatabaseBusy(error, 'All connections to the database are in use');
  if (reason === NO_ANSWER) return new DatabaseBusy(error, 'The database does not answer');
  const problem = problemOf(code, reason);
  if (problem !== null) return new DatabaseFault(problem, error, advice[problem]);
  if (BUSY.test(code)) return new DatabaseBusy(error, 'The database took too long');
  return error;
}

function problemOf(code: string, reason: string): DatabaseProblem | null {
  if (code === '53100') return 'database_full';
  if (code === 'XX001' || code === 'XX002') return 'database_damaged';
  // I/O error, standby server, wrong user (28...), unknown database or schema (3...), missing right (42501), TLS.
  const isUnusable =
    /^(58030|25006|28...|3D000|3F000|42501|ERR_TLS_\w+|CERT_\w+|\w+_CERT|\w+_IN_CHAIN|UNABLE_TO_\w+)$/.test(
      code,
    );
  return isUnusable || /SSL connection|^SASL|^client password/.test(reason) ? 'database_unusable' : null;
}
