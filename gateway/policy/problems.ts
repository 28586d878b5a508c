/** Mistakes in a policy file, each with its place and a fix. */

export interface Problem {
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** What is wrong and how to fix it. */
  readonly message: string;
}

export class PolicyFileError extends Error {
  readonly file: string;
  /** In the order of the file. */
  readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    const inOrder = [...problems].sort((a, b) => a.line - b.line || a.column - b.column);
    super(inOrder.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`).join('\n'));
    this.name = 'PolicyFileError';
    this.file = file;
    this.problems = inOrder;
  }
}

export type Path = readonly (string | number)[];

/** Reports a mistake at the value that `path` leads to; `key`: at the key in front of it. */
export type Report = (path: Path, message: string, point?: 'value' | 'key') => void;
