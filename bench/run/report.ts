/** Prints the results as tables. */
import { describeMachine } from './machine.ts';

export interface Table {
  readonly title: string;
  /** Names of the columns. Empty if each row is a name and a value. */
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Lines below the table. */
  readonly notes?: readonly string[];
}

export function printMachine(): void {
  process.stdout.write(`${new Date().toISOString()}, ${describeMachine()}\n\n`);
}

/** Prints a table. With a head, all columns but the first are aligned to the right. */
export function printTable({ title, head, rows, notes = [] }: Table): void {
  const hasHead = head.length > 0;
  const all = hasHead ? [head, ...rows] : rows;
  const widths = (all[0] ?? []).map((_, i) => Math.max(...all.map((row) => (row[i] ?? '').length)));
  const pad = (cell: string, i: number): string =>
    i > 0 && hasHead ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0);
  const lines = [title, ...all.map((row) => row.map(pad).join('  ').trimEnd()), ...notes];
  process.stdout.write(`${lines.join('\n')}\n\n`);
}

export function rounded(value: number, digits: number): string {
  return Number.isFinite(value)
    ? value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
    : '-';
}
