/** Prints tables, and also writes them with all figures to a JSON file in `bench/results/`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeMachine } from './machine.ts';
import { BENCH } from './programs.ts';

export interface Table {
  readonly title: string;
  /** Names of the columns. Empty if each row is a name and a value. */
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Lines below the table. */
  readonly notes?: readonly string[];
}

export class Report {
  readonly #path: string;
  readonly #machine: string;
  readonly #tables: object[] = [];

  /** @param name first part of the file name */
  constructor(name: string) {
    const at = new Date().toISOString();
    const folder = join(BENCH, 'results');
    mkdirSync(folder, { recursive: true });
    this.#path = join(folder, `${name}-${at.replaceAll(/[:.]/g, '-')}.json`);
    this.#machine = `${at}, ${describeMachine()}`;
    process.stdout.write(`${this.#machine}\nresults in ${this.#path}\n\n`);
  }

  /** @param figures the data of the table */
  add(table: Table, figures?: unknown): void {
    this.#tables.push({ ...table, figures });
    const document = { machine: this.#machine, tables: this.#tables };
    writeFileSync(this.#path, `${JSON.stringify(document, null, 1)}\n`);
    process.stdout.write(`${textOf(table)}\n\n`);
  }
}

export function rounded(value: number, digits: number): string {
  return Number.isFinite(value)
    ? value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
    : '-';
}

/** Formats a table. With a head, all columns but the first are aligned to the right. */
function textOf({ title, head, rows, notes = [] }: Table): string {
  const hasHead = head.length > 0;
  const all = hasHead ? [head, ...rows] : rows;
  const widths = (all[0] ?? []).map((_, i) => Math.max(...all.map((row) => (row[i] ?? '').length)));
  const pad = (cell: string, i: number): string =>
    i > 0 && hasHead ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0);
  return [title, ...all.map((row) => row.map(pad).join('  ').trimEnd()), ...notes].join('\n');
}
