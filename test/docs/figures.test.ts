/** The figures of the README are those of docs/performance.md, rounded, with gateway and Redis together. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';

/** Returns the first table after a heading: its rows as cells by the name of their column. */
function tableAfter(file: string, heading: string): readonly Map<string, string>[] {
  const text = readFileSync(join(projectRoot, file), 'utf8');
  const lines = text.slice(text.indexOf(`\n${heading}\n`)).split('\n');
  const first = lines.findIndex((line) => line.startsWith('|'));
  const length = lines.slice(first).findIndex((line) => !line.startsWith('|'));
  const cellsOf = (line: string): string[] =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
  const [names = '', , ...rows] = lines.slice(first, first + length);
  const columns = cellsOf(names);
  return rows.map((row) => new Map(cellsOf(row).map((cell, i) => [columns[i] ?? '', cell])));
}

/** Adds the parts of a cell such as `32.1 + 1.8`. @returns '' for an empty cell */
function sumOf(cell: string): string {
  return cell === '' ? '' : String(Math.round(cell.split('+').reduce((sum, part) => sum + Number(part), 0)));
}

t.test('the README quotes docs/performance.md', async (t) => {
  const measured = tableAfter('docs/performance.md', '## What a request costs');
  const quoted = tableAfter('README.md', '## Figures');
  t.ok(quoted.length > 0);
  for (const row of quoted) {
    const name = row.get('') ?? '';
    const source = measured.find((one) => one.get('') === name);
    t.ok(source, `docs/performance.md has the row ${name}`);
    for (const [column, cell] of row)
      if (column !== '') t.equal(cell, sumOf(source?.get(column) ?? ''), `${name}, ${column}`);
  }
});
