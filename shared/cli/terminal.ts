/** Output of commands: tables for people, one JSON document for scripts. */
import { stripVTControlCharacters, styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** A terminal, or a substitute in tests. */
type Output = NodeJS.WritableStream & { readonly isTTY?: boolean };

export class Terminal {
  readonly #stdout: Output;
  readonly #stderr: Output;

  constructor({ stdout, stderr }: { readonly stdout: Output; readonly stderr: Output }) {
    this.#stdout = stdout;
    this.#stderr = stderr;
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

  /**
   * Prints a table. Columns of numbers are aligned right. There are no lines between columns, so that the text can be
   * copied, searched and cut.
   */
  table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
    const textOf = (cell: string | number): string =>
      typeof cell === 'number' ? cell.toLocaleString('en') : cell;
    const all = [head.map((text) => this.style('bold', text)), ...rows.map((row) => row.map(textOf))];
    const columns = head.map((_, i) => ({
      width: Math.max(...all.map((row) => widthOf(row[i] ?? ''))),
      isNumeric: rows.every((row) => typeof row[i] === 'number'),
    }));
    for (const row of all) {
      const cells = columns.map(({ width, isNumeric }, i) => {
        const cell = row[i] ?? '';
        const space = ' '.repeat(width - widthOf(cell));
        return isNumeric ? space + cell : cell + space;
      });
      this.line(cells.join('  '));
    }
  }
}

function widthOf(text: string): number {
  return stripVTControlCharacters(text).length;
}
