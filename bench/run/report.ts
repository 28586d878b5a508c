/** Reports tables: at once on the terminal, and at the end with all figures as JSON in `bench/results/`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Machine } from './machine.ts';
import { BENCH } from './programs.ts';
import { type Table, textOf } from './table.ts';

export class Report {
  readonly #name: string;
  readonly #machine: Machine;
  readonly #tables: Table[] = [];

  /** @param name the first part of the names of its files */
  constructor(name: string, machine: Machine) {
    this.#name = name;
    this.#machine = machine;
    process.stdout.write(`${machine.text}\n\n`);
  }

  add(table: Table): void {
    this.#tables.push(table);
    process.stdout.write(`${textOf(table)}\n\n`);
  }

  /** @param results all figures */
  write(results: unknown): void {
    const folder = join(BENCH, 'results');
    mkdirSync(folder, { recursive: true });
    const path = join(folder, `${this.#name}-${this.#machine.at.replaceAll(/[:.]/g, '-')}.json`);
    const document = { machine: this.#machine, tables: this.#tables, results };
    writeFileSync(path, `${JSON.stringify(document, null, 1)}\n`);
    process.stdout.write(`written to ${path}\n`);
  }
}
