/** Output of commands: tables for people, one JSON document for scripts. */
import { styleText } from 'node:util';
import Table from 'cli-table3';

type Style = Parameters<typeof styleText>[0];

/** A terminal, or a substitute in tests. */
type Output = NodeJS.WritableStream & { readonly isTTY?: boolean };

interface TerminalOptions {
  readonly stdout: Output;
  readonly stderr: Output;
}

export class Terminal {
  readonly #stdout: Output;
  readonly #stderr: Output;

  constructor({ stdout, stderr }: TerminalOptions) {
    this.#stdout = stdout;
    this.#stderr = stderr;
  }

  get isInteractive(): boolean {
    return this.#stderr.isTTY === true;
  }

  line(text = ''): void {
    for (const line of text.split('\n')) this.#stdout.write(`${line.trimEnd()}\n`);
  }

  error(text: string): void {
    this.#stderr.write(`${text}\n`);
  }

  json(document: unknown): void {
    this.#stdout.write(`${JSON.stringify(document, null, this.#stdout.isTTY === true ? 2 : undefined)}\n`);
  }

  /** Adds colour on a terminal, unless NO_COLOR is set. */
  style(style: Style, text: string): string {
    return styleText(style, text, { stream: this.#stdout });
  }

  /** Prints a table. Columns of numbers are aligned right. */
  table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
    const table = new Table({
      head: head.map((text) => this.style('bold', text)),
      chars: PLAIN,
      style: { head: [], border: [], 'padding-left': 0, 'padding-right': 2 },
      colAligns: head.map((_, i) => (rows.every((row) => typeof row[i] === 'number') ? 'right' : 'left')),
    });
    for (const row of rows)
      table.push(row.map((cell) => (typeof cell === 'number' ? cell.toLocaleString('en') : cell)));
    this.line(table.toString().replace(/ +$/gm, ''));
  }
}

/** A style without lines between columns, so that the text can be copied, searched and cut. */
const PLAIN = Object.fromEntries(
  ['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right']
    .concat(['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'])
    .map((part) => [part, '']),
);
