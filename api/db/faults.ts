/**
 * Errors of both databases. While one is busy or away, retrying later helps. A fault does not go away by retrying: the
 * disk is full, or the database is damaged or not writable. Callers get 503, and the operator gets a sentence with advice.
 */

export type DatabaseProblem = 'database_full' | 'database_damaged' | 'database_unusable';

const advice: Readonly<Record<DatabaseProblem, string>> = {
  database_full:
    'there is no space left for the database; free some on its disk; the API recovers by itself if it still runs',
  database_damaged:
    'the database is damaged; stop the service, and restore a backup or what "sqlite3 FILE .recover" finds',
  database_unusable:
    'the database cannot be read or written; look at its disk and at the rights to its folder, or at the address of the server, the rights of the user and sslmode',
};

export class DatabaseFault extends Error {
  readonly problem: DatabaseProblem;

  constructor(problem: DatabaseProblem, cause: unknown) {
    super(`DATABASE_URL: ${advice[problem]} (${reasonOf(cause)})`, { cause });
    this.name = 'DatabaseFault';
    this.problem = problem;
  }
}

/** Retrying later helps: others block the statement, or the server is away. */
export class DatabaseBusy extends Error {
  readonly isAway: boolean;

  constructor(cause: unknown, isAway = false) {
    super(isAway ? 'The database cannot be reached' : 'The database is busy', { cause });
    this.name = 'DatabaseBusy';
    this.isAway = isAway;
  }
}

/** The database cannot be opened. The message is for the operator. */
export class DatabaseUnavailable extends Error {
  constructor(message: string, cause: unknown) {
    super(`DATABASE_URL: ${message} (${reasonOf(cause)})`, { cause });
    this.name = 'DatabaseUnavailable';
  }
}

/** Called for every fault of a statement, and when the server is away. */
export type OnTrouble = (trouble: DatabaseFault | DatabaseBusy) => void;

export function reasonOf(cause: unknown): string {
  // For a host with several addresses, node:net throws an AggregateError without a message.
  if (cause instanceof AggregateError && cause.errors.length > 0) return reasonOf(cause.errors[0]);
  return cause instanceof Error ? cause.message : String(cause);
}

/** Returns the code of an error of a driver, a socket or a server; '' if it has none. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return 'code' in error ? String(error.code) : '';
}

/**
 * The table says what an error code of SQLite, a socket or PostgreSQL (SQLSTATE) means. node-postgres has no codes, so the
 * table has its messages. The first row that matches counts.
 */
const kinds: readonly (readonly [kind: DatabaseProblem | 'away' | 'busy', codes: RegExp])[] = [
  // Connection errors, a server that stops or starts or has too many connections, an idle transaction that it ended.
  ['away', /^(08...|57P0[1-5]|53300|25P03)$/],
  ['away', /^(ECONN\w+|E(PIPE|TIMEDOUT|NOENT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN))$/],
  ['away', /^(Connection terminated|Client (has encountered|was closed)|timeout expired|Query read timeout)/],
  ['away', /^Cannot use a pool/],
  ['database_full', /^(SQLITE_FULL|53100)$/],
  ['database_damaged', /^(SQLITE_CORRUPT\w*|SQLITE_NOTADB|XX00[12])$/],
  ['database_unusable', /^SQLITE_(IOERR|READONLY|CANTOPEN|PERM)/],
  // An I/O error, a standby server, a wrong user, an unknown database or schema, a missing right.
  ['database_unusable', /^(58030|25006|28...|3D000|3F000|42501)$/],
  ['database_unusable', /^(ERR_TLS_\w+|CERT_\w+|\w+_CERT|\w+_IN_CHAIN|UNABLE_TO_\w+)$/],
  ['database_unusable', /SSL connection|^SASL|^client password/],
  // A statement or a lock took too long, or the server lacks a resource.
  ['busy', /^(SQLITE_(BUSY|LOCKED)\w*|57014|55P03|53...)$/],
  ['busy', /^timeout exceeded when trying to connect/],
];

/** Returns our error for that of a driver, or the same error if it is a mistake of ours. */
export function translated(error: unknown): unknown {
  const sign = codeOf(error) || reasonOf(error);
  const [kind] = kinds.find(([, codes]) => codes.test(sign)) ?? [];
  if (kind === undefined) return error;
  return kind === 'away' || kind === 'busy'
    ? new DatabaseBusy(error, kind === 'away')
    : new DatabaseFault(kind, error);
}
