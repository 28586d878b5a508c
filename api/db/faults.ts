/**
 * Errors of databases. If a database is busy or unavailable, retrying later helps. A fault does not go away by
 * retrying: the disk is full, or the database is damaged or not writable. Callers get 503 with a code, and the operator
 * gets a sentence with advice. Each driver translates its own codes.
 */

export type DatabaseProblem = 'database_full' | 'database_damaged' | 'database_unusable';

const advice: Readonly<Record<DatabaseProblem, string>> = {
  database_full:
    'DATABASE_URL: there is no space left for the database; free some on its disk; the API recovers by itself if it still runs',
  database_damaged:
    'DATABASE_URL: the database is damaged; stop the service, and restore a backup or what "sqlite3 FILE .recover" finds',
  database_unusable:
    'DATABASE_URL: the database cannot be read or written; look at its disk and at the rights to its folder',
};

export class DatabaseFault extends Error {
  readonly problem: DatabaseProblem;

  constructor(problem: DatabaseProblem, cause: unknown, sentence = advice[problem]) {
    super(`${sentence} (${reasonOf(cause)})`, { cause });
    this.name = 'DatabaseFault';
    this.problem = problem;
  }
}

/** Called for every fault of a statement. */
export type OnFault = (problem: DatabaseProblem, fault: DatabaseFault) => void;

/** Thrown while another process blocks the statement. Retrying later helps. */
export class DatabaseBusy extends Error {
  constructor(cause?: unknown, message = 'The database is being written to by another process') {
    super(message, { cause });
    this.name = 'DatabaseBusy';
  }
}

/** The database cannot be opened. The message is for the operator. */
export class DatabaseUnavailable extends Error {
  constructor(message: string, cause: unknown) {
    super(`DATABASE_URL: ${message}`, { cause });
    this.name = 'DatabaseUnavailable';
  }
}

/** Thrown if another process uses the database. The message is for the operator. */
export class DatabaseInUse extends Error {
  constructor(where: string, cause?: unknown) {
    super(`${where} is in use by another process, most likely the API; stop it first`, { cause });
    this.name = 'DatabaseInUse';
  }
}

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

export function withFault(error: unknown): unknown {
  const problem = problemOf(codeOf(error));
  return problem === null ? error : new DatabaseFault(problem, error);
}

function problemOf(code: string): DatabaseProblem | null {
  if (code === 'SQLITE_FULL') return 'database_full';
  if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB') return 'database_damaged';
  return /^SQLITE_(IOERR|READONLY|CANTOPEN|PERM)/.test(code) ? 'database_unusable' : null;
}
