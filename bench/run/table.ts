/** A table of results, and its text for a terminal. */
export interface Table {
  readonly title: string;
  /** Empty: rows of a name and a value. */
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Lines below the table. */
  readonly notes?: readonly string[];
}

export function rounded(value: number, digits: number): string {
  return Number.isFinite(value)
    ? value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
    : '-';
}

/** With a head, all columns but the first are aligned to the right. */
export function textOf({ title, head, rows, notes = [] }: Table): string {
  const hasHead = head.length > 0;
  const all = hasHead ? [head, ...rows] : rows;
  const widths = (all[0] ?? []).map((_, i) => Math.max(...all.map((row) => (row[i] ?? '').length)));
  const pad = (cell: string, i: number): string =>
    i > 0 && hasHead ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0);
  return [title, ...all.map((row) => row.map(pad).join('  ').trimEnd()), ...notes].join('\n');
}
