/** Prints the results as tables, with the machine and the versions of all programs. */
import { spawnSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import { PATH, ROOT } from './programs.ts';

export interface Table {
  readonly title: string;
  /** Names of the columns. Empty if each row is a name and a value. */
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Lines below the table. */
  readonly notes?: readonly string[];
}

export function printMachine(): void {
  const load = loadavg().map((value) => value.toFixed(2));
  process.stdout.write(`${new Date().toISOString()}, ${machine()}, load ${load.join(' ')}\n\n`);
}

/** Returns the commit, the machine, and the versions of all programs. */
export function machine(): string {
  const versions = ['redis-server --version', 'nginx -v', 'haproxy -v', 'caddy version'].map((command) => {
    const [program = '', flag = ''] = command.split(' ');
    return `${program} ${/\d+(?:\.\d+)+/.exec(outputOf(program, flag))?.[0] ?? 'not installed'}`;
  });
  const memoryGb = Math.round(totalmem() / 2 ** 30);
  const commit = outputOf('git', 'describe', '--always', '--dirty').trim();
  return `commit ${commit}, ${availableParallelism()} × ${cpus()[0]?.model}, ${memoryGb} GB, Linux ${release()}, Node ${process.version}, ${versions.join(', ')}`;
}

function outputOf(program: string, ...args: readonly string[]): string {
  const env = { ...process.env, PATH };
  const { stdout, stderr } = spawnSync(program, args, { cwd: ROOT, encoding: 'utf8', env });
  return `${stdout}${stderr}`;
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
