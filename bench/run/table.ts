/** A table of results, and its text for a terminal. */
export interface Table {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Lines below the table. */
  readonly notes?: readonly string[];
  /** A bar for each row. */
  readonly bars?: readonly Bar[];
}

export interface Bar {
  readonly isOurs: boolean;
  /** Lengths from left to right. */
  readonly parts: readonly number[];
  /** The lower and the upper quartile of the first part. */
  readonly quartiles: readonly [number, number];
  readonly text: string;
}

export function rounded(value: number, digits: number): string {
  return Number.isFinite(value)
    ? value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
    : '-';
}

/** The first column is aligned to the left, all others to the right. */
export function textOf({ title, head, rows, notes = [] }: Table): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  const pad = (cell: string, i: number): string =>
    i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0);
  return [title, ...all.map((row) => row.map(pad).join('  ')), ...notes].join('\n');
}
