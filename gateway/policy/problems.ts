export interface Problem {
  /** Line number in the file. Lines and columns start at 1. */
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly fix: string;
}

/** A mistake in one value of the file. The caller adds the position. */
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
  readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    const sorted = inOrder(problems);
    super(sorted.map((problem) => sentenceOf(file, problem)).join('\n'));
    this.name = 'PolicyFileError';
    this.file = file;
    this.problems = sorted;
  }
}

/** Formats a problem as `FILE:LINE:COLUMN: message; fix`, which editors can link. */
export function sentenceOf(file: string, { line, column, message, fix }: Problem): string {
  return `${file}:${line}:${column}: ${message}; ${fix}`;
}

export function inOrder(problems: readonly Problem[]): Problem[] {
  return [...problems].sort((a, b) => a.line - b.line || a.column - b.column);
}

export type Path = readonly (string | number)[];

/** Reports a mistake at the value at `path`; with `key`, at the key in front of the value. */
export type Report = (path: Path, message: string, fix: string, point?: 'value' | 'key') => void;

/** Reports each of the keys that is written. @param why behind the key, such as `cannot be combined with limits` */
export function refuseKeys<T extends object>(
  written: T,
  keys: readonly (keyof T & string)[],
  here: Path,
  report: Report,
  why: string,
  fix: string,
): void {
  for (const key of keys) if (written[key] !== undefined) report([...here, key], `${key} ${why}`, fix, 'key');
}

/** @returns what `read` returns; null if it throws a Mistake, which is reported */
export function attempt<V>(report: Report, path: Path, read: () => V): V | null {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Mistake)) throw error;
    report(path, error.what, error.fix);
    return null;
  }
}

/** Reads each value of a list, and reports those with a mistake by their number. The holes of a list are skipped. */
export function readEach<W, V>(values: readonly W[], report: Report, read: (value: W) => V): V[] {
  return values.flatMap((value, i) => attempt(report, [i], () => [read(value)]) ?? []);
}

/** Finds a character that shows that text in another encoding was read as UTF-8; null if there is none. */
export function foreignCharacter(text: string): { at: number; message: string; fix: string } | null {
  const at = text.search(/[\0\ufffd]/);
  if (at < 0) return null;
  return text[at] === '\0'
    ? { at, message: 'a NUL character', fix: 'remove it, or save the file in UTF-8 if it is in UTF-16' }
    : { at, message: 'text that is not UTF-8', fix: 'save the file in the encoding UTF-8' };
}
