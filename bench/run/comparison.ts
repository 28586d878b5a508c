/** Makes a table that compares servers: medians of all rounds, and ratios of two servers in the same round. */
import type { Slice } from './measure.ts';
import { rounded, type Table } from './report.ts';
import { type Spread, spread } from './statistics.ts';

export interface Compared {
  readonly label: string;
  /** One slice for each round. */
  readonly slices: readonly Slice[];
  /** Why the server was not measured. */
  readonly failure?: string;
}

/** An additional column of the table. `of` returns one figure for each round of a server. */
interface Column {
  readonly head: string;
  readonly of: (slices: readonly Slice[]) => readonly number[];
}

const HEAD = [
  ...['', 'req/s', 'CPU µs', 'min', 'store µs', 'store cmds', 'p50 ms', 'p99 ms', 'RSS MB', 'refused'],
  'errors',
];

/** Returns the ratio of two servers in each round. A disturbance of the machine usually affects both alike. */
export function ratios(
  ours: readonly Slice[],
  theirs: readonly Slice[],
  measure: keyof Slice,
): readonly number[] {
  return ours.map((slice, i) => slice[measure] / (theirs[i]?.[measure] ?? Number.NaN));
}

export function comparisonTable(
  title: string,
  compared: Iterable<Compared>,
  columns: readonly Column[],
  moreNotes: readonly string[] = [],
): Table {
  const head = [...HEAD, ...columns.map((column) => column.head)];
  const notes: string[] = [];
  const rows = [...compared].map(({ label, slices, failure }) => {
    if (failure !== undefined) {
      notes.push(`${label} was not measured: ${failure}`);
      return [label, 'not measured', ...head.slice(2).map(() => '-')];
    }
    const of = (measure: keyof Slice): Spread => spread(slices.map((slice) => slice[measure]));
    const middle = (measure: keyof Slice, digits: number): string => rounded(of(measure).median, digits);
    return [
      ...[label, middle('perSecond', 0), withQuartiles(of('cpuUs'), 1), rounded(of('cpuUs').min, 1)],
      ...[middle('storeCpuUs', 1), middle('storeCommands', 2), middle('p50Ms', 2), middle('p99Ms', 2)],
      ...[middle('rssMb', 0), `${rounded(of('refusedShare').median * 100, 1)} %`],
      rounded(of('errors').max, 0),
      ...columns.map((column) => withQuartiles(spread(column.of(slices)), 2)),
    ];
  });
  return { title, head, rows, notes: [...notes, ...moreNotes] };
}

function withQuartiles({ p25, median, p75 }: Spread, digits: number): string {
  return Number.isFinite(median)
    ? `${rounded(median, digits)} (${rounded(p25, digits)}-${rounded(p75, digits)})`
    : '-';
}
