/**
 * What no repetition of a statement changes: the disk is full, the file is damaged, or it cannot be written to. Knows
 * SQLite's codes. Callers get 503 and a code for it, the operator a sentence that says what to do.
 */

export type DatabaseProblem = 'database_full' | 'database_damaged' | 'database_unusable';

const advice: Readonly<Record<DatabaseProblem, string>> = {
  database_full:
    'DATABASE_URL: there is no space left for the database; free some on its disk, and it goes on by itself',
  database_damaged:
    'DATABASE_URL: the database is damaged; stop the service, and restore a backup or what "sqlite3 FILE .recover" finds',
  database_unusable:
    'DATABASE_URL: the database cannot be read or written; look at its disk and at the rights to its folder',
};

export class DatabaseFault extends Error {
  readonly problem: DatabaseProblem;

  constructor(problem: DatabaseProblem, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`${advice[problem]} (${reason})`, { cause });
    this.name = 'DatabaseFault';
    this.problem = problem;
  }
}

/** @returns the error as it is, or the fault it stands for */
export function withFault(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const problem = problemOf(code);
  return problem === null ? error : new DatabaseFault(problem, error);
}

function problemOf(code: string): DatabaseProblem | null {
  if (code === 'SQLITE_FULL') return 'database_full';
  if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB') return 'database_damaged';
  return /^SQLITE_(IOERR|READONLY|CANTOPEN|PERM)/.test(code) ? 'database_unusable' : null;
}
