/** What a command says, and to whom: tables for people, one JSON document for scripts. */
import { styleText } from 'node:util';
import Table from 'cli-table3';

type Style = Parameters<typeof styleText>[0];

/** A terminal, or what stands in for one. */
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean };

export interface TerminalOptions {
  readonly stdout: Output;
  readonly stderr: Output;
}

export class Terminal {
  readonly #stdout: Output;
  readonly #stderr: Output;
  /** Before every line of the answer. */
  readonly #prefix: string;

  constructor({ stdout, stderr }: TerminalOptions, prefix = '') {
    this.#stdout = stdout;
    this.#stderr = stderr;
    this.#prefix = prefix;
  }

  /** The same, for lines that are comments of what is printed. */
  commented(): Terminal {
    return new Terminal({ stdout: this.#stdout, stderr: this.#stderr }, '# ');
  }

  /** Somebody reads along: progress may be shown. */
  get isInteractive(): boolean {
    return this.#stderr.isTTY === true;
  }

  /** Somebody watches what is printed: it may be drawn again. */
  get isScreen(): boolean {
    return this.#stdout.isTTY === true;
  }

  /** Empties it, where it is one. */
  clear(): void {
    if (this.isScreen) this.#stdout.write('\u001b[H\u001b[2J');
  }

  get progressStream(): Output {
    return this.#stderr;
  }

  line(text = ''): void {
    for (const line of text.split('\n')) this.#stdout.write(`${`${this.#prefix}${line}`.trimEnd()}\n`);
  }

  /** What is wrong; never mixed into the answer. */
  error(text: string): void {
    this.#stderr.write(`${text}\n`);
  }

  json(document: unknown): void {
    this.#stdout.write(`${JSON.stringify(document, null, this.#stdout.isTTY === true ? 2 : undefined)}\n`);
  }

  /** Colour on a terminal only, and not when NO_COLOR is set. */
  style(style: Style, text: string): string {
    return styleText(style, text, { stream: this.#stdout });
  }

  /** Numbers are set to the right. */
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

/** Columns without lines: they can be copied, searched and cut. */
const PLAIN = Object.fromEntries(
  ['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right']
    .concat(['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'])
    .map((part) => [part, '']),
);
