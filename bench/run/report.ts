/** Reports tables at once: on the terminal, and with all figures as JSON in `bench/results/`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeMachine } from './machine.ts';
import { BENCH } from './programs.ts';

export interface Table {
  readonly title: string;
  /** Empty: rows of a name and a value. */
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Lines below the table. */
  readonly notes?: readonly string[];
}

export class Report {
  readonly #path: string;
  readonly #machine: string;
  readonly #tables: object[] = [];

  /** @param name the first part of the name of its file */
  constructor(name: string) {
    const at = new Date().toISOString();
    const folder = join(BENCH, 'results');
    mkdirSync(folder, { recursive: true });
    this.#path = join(folder, `${name}-${at.replaceAll(/[:.]/g, '-')}.json`);
    this.#machine = `${at}, ${describeMachine()}`;
    process.stdout.write(`${this.#machine}\nresults in ${this.#path}\n\n`);
  }

  /** @param figures from which the table was made */
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

/** With a head, all columns but the first are aligned to the right. */
function textOf({ title, head, rows, notes = [] }: Table): string {
  const hasHead = head.length > 0;
  const all = hasHead ? [head, ...rows] : rows;
  const widths = (all[0] ?? []).map((_, i) => Math.max(...all.map((row) => (row[i] ?? '').length)));
  const pad = (cell: string, i: number): string =>
    i > 0 && hasHead ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0);
  return [title, ...all.map((row) => row.map(pad).join('  ').trimEnd()), ...notes].join('\n');
}
