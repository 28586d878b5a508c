/**
 * What PostgreSQL and its driver report, in our words (faults.ts). Knows the codes of the server, SQLSTATE, those of
 * sockets, and the sentences of node-postgres, which has no codes of its own.
 */
import { uniqueDigests } from './dialect.ts';
import { DatabaseBusy, DatabaseFault, type DatabaseProblem, reasonOf } from './faults.ts';

/** The server cannot be reached, or takes no more connections. */
export class DatabaseAway extends DatabaseBusy {
  constructor(cause: unknown) {
    super(cause, `The database cannot be reached (${reasonOf(cause)})`);
    this.name = 'DatabaseAway';
  }
}

const advice: Readonly<Record<DatabaseProblem, string>> = {
  database_full:
    'DATABASE_URL: the server of the database has no space left; free some on its disk, and it goes on by itself',
  database_damaged:
    'DATABASE_URL: the database is damaged; stop the service, look at the log of the server, and restore a backup',
  database_unusable:
    'DATABASE_URL: the database cannot be read or written; look at the address, and at the rights of its user',
};

/**
 * Connections end (class 08), the server stops or starts (57P01 to 57P03), is full (53300), or ended a session that did
 * nothing inside a transaction (25P03).
 */
const AWAY =
  /^(08...|57P0[1-5]|53300|25P03|ECONN\w+|E(PIPE|TIMEDOUT|NOENT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN))$/;
const AWAY_SENTENCES =
  /^(Connection terminated|Client has encountered a connection error|timeout expired|Client was closed|Cannot use a pool)/;
/** All connections of ours are taken. */
const NO_CONNECTION = 'timeout exceeded when trying to connect';
const NO_ANSWER = 'Query read timeout';
/** A statement or a lock took too long (57014, 55P03), or the server is short of memory or the like (53...). */
const BUSY = /^(57014|55P03|53...)$/;
/**
 * What the server undid because of others, and does when it is asked again: two that cannot be put in an order (40001), a
 * deadlock (40P01), or a row that is referred to and was deleted at this moment (23503), which the next attempt misses.
 */
const CONFLICT = /^(40001|40P01|23503)$/;
/** The server's own function that checks what was prepared; its code stands for anything that is not supported. */
const PLAN_CHECK = 'RevalidateCachedQuery';

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return 'code' in error ? String(error.code) : '';
}

/** Another transaction was in the way: the same work succeeds when it is done again. */
export function isConflict(error: unknown): boolean {
  return CONFLICT.test(codeOf(error)) || isStale(error);
}

/** A statement was prepared before its tables changed, and its rows have other columns now. */
export function isStale(error: unknown): boolean {
  return codeOf(error) === '0A000' && error instanceof Error && Reflect.get(error, 'routine') === PLAN_CHECK;
}

/** Is nothing more to be asked over this connection? */
export function isBroken(error: unknown): boolean {
  return isAway(error) || reasonOf(error) === NO_ANSWER;
}

function isAway(error: unknown): boolean {
  return AWAY.test(codeOf(error)) || AWAY_SENTENCES.test(reasonOf(error));
}

/** @returns the error as it is, or what it stands for */
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
  // An I/O error, a standby, no or the wrong user (28...), no such database or schema (3...), a missing right (42501), TLS.
  const isUnusable =
    /^(58030|25006|28...|3D000|3F000|42501|ERR_TLS_\w+|CERT_\w+|\w+_CERT|\w+_IN_CHAIN|UNABLE_TO_\w+)$/.test(
      code,
    );
  return isUnusable || /SSL connection|^SASL|^client password/.test(reason) ? 'database_unusable' : null;
}

/** No index of ours has as much to say of its columns. */
const COLUMNS_LENGTH_MAX = 1_000;

/**
 * The columns of the index that refused a row, `table.column` in its order; null when none did. `detail` reads
 * `Key ("workspaceId", name)=(…) already exists.` in the server's language, but the columns stand in it in every language.
 * Long text is indexed by its digest, whose indexes are known by name (see dialect.ts).
 */
export function violatedIndex(error: unknown): readonly string[] | null {
  if (codeOf(error) !== '23505' || !(error instanceof Error)) return null;
  const known = uniqueDigests[String(Reflect.get(error, 'constraint'))];
  if (known !== undefined) return known;
  const table = String(Reflect.get(error, 'table') ?? '');
  const detail = String(Reflect.get(error, 'detail') ?? '');
  const columns = detail.slice(detail.indexOf('(') + 1, detail.indexOf(')=(')).slice(0, COLUMNS_LENGTH_MAX);
  const names = columns.matchAll(/(?:hashtextextended\()?"?(\w+)"?(?:, \(?'?0'?\)?::\w+\))?(?:, |$)/g);
  return Array.from(names, ([, name]) => `${table}.${name}`);
}
