/** The report at the end of a copy or a comparison. */
import type { Copied } from '#api/db/copy/copy.ts';
import type { TableComparison } from '#api/db/copy/verify.ts';
import type { Terminal } from '#shared/cli/terminal.ts';

const DIFFERENCES = {
  missing: 'is not in the target',
  added: 'is in the target only',
  changed: 'is not the same',
} as const;

interface ReportOptions {
  /** Result of the copy; null if rows were only compared. */
  readonly copied: Copied | null;
  readonly json: boolean;
  readonly terminal: Terminal;
}

export function report(tables: readonly TableComparison[], { copied, json, terminal }: ReportOptions): void {
  const others = tables.filter((table) => !table.isSame).map(({ table }) => table);
  if (json) {
    terminal.json({ isSame: others.length === 0, ...copied, tables });
    return;
  }
  terminal.table(
    ['table', 'rows', 'in the target', 'contents'],
    tables.map(({ table, from, to, isSame }) => [
      table,
      from.rows,
      to.rows,
      isSame ? 'the same' : terminal.style('red', 'DIFFERENT'),
    ]),
  );
  terminal.line();
  if (copied !== null) {
    const before = copied.resumedAt === 0 ? '' : ` after ${count(copied.resumedAt)} of an earlier run`;
    terminal.line(`${count(copied.rows)} rows copied${before}.`);
  }
  if (others.length === 0) terminal.line('Both databases hold the same rows.');
  else {
    const advice = copied === null ? '' : ' The source was changed since the copy began: add --restart.';
    terminal.error(`The databases differ in ${others.join(', ')}.${advice}`);
    for (const { table, differences } of tables) {
      for (const { key, kind } of differences) {
        // Quoted, because control characters in a key must not reach the terminal.
        terminal.error(`${table} ${JSON.stringify(key.join('/'))} ${DIFFERENCES[kind]}`);
      }
    }
  }
}

function count(value: number): string {
  return value.toLocaleString('en');
}
