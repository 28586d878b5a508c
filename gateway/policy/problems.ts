/** Mistakes in a policy file, each with its place and a fix. */

export interface Problem {
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** What is wrong. */
  readonly message: string;
  /** What to do about it. */
  readonly fix: string;
}

/** A part of the file that cannot be read: what is wrong with it, and what to do about it. */
export class Mistake extends Error {
  readonly what: string;
  readonly fix: string;

  constructor(what: string, fix: string) {
    super(`${what}; ${fix}`);
    this.name = 'Mistake';
    this.what = what;
    this.fix = fix;
  }
}

export class PolicyFileError extends Error {
  readonly file: string;
  /** In the order of the file. */
  readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    const sorted = inOrder(problems);
    super(sorted.map((problem) => sentenceOf(file, problem)).join('\n'));
    this.name = 'PolicyFileError';
    this.file = file;
    this.problems = sorted;
  }
}

/** As compilers write theirs. */
export function sentenceOf(file: string, { line, column, message, fix }: Problem): string {
  return `${file}:${line}:${column}: ${message}; ${fix}`;
}

export function inOrder(problems: readonly Problem[]): Problem[] {
  return [...problems].sort((a, b) => a.line - b.line || a.column - b.column);
}

export type Path = readonly (string | number)[];

/** Reports a mistake at the value that `path` leads to; `key`: at the key in front of it. */
export type Report = (path: Path, message: string, fix: string, point?: 'value' | 'key') => void;

/** Reports what a `Mistake` says; anything else is a fault of ours. */
export function reportMistake(report: Report, path: Path, error: unknown): void {
  if (!(error instanceof Mistake)) throw error;
  report(path, error.what, error.fix);
}
