/** The table of servers that were visited in turn: medians of all rounds, and ratios of pairs from the same round. */
import type { Slice } from './measure.ts';
import { rounded, type Table } from './report.ts';
import { pairedRatio, type Spread, spread } from './statistics.ts';

export interface Compared {
  readonly label: string;
  /** One for each round; a text: why there are none. */
  readonly slices: readonly Slice[] | string;
}

interface RatioColumn {
  readonly head: string;
  readonly measure: keyof Slice;
  /** The ratio of two servers' figures in each round, for the server of a row. */
  readonly of: (slices: readonly Slice[]) => readonly [readonly Slice[], readonly Slice[]];
}

const HEAD = [
  ...['', 'req/s', 'CPU µs', 'min', 'store µs', 'store cmds', 'p50 ms', 'p99 ms', 'RSS MB', 'refused'],
  'errors',
];

export function comparisonTable(
  title: string,
  compared: readonly Compared[],
  ratios: readonly RatioColumn[],
  moreNotes: readonly string[] = [],
): Table {
  const head = [...HEAD, ...ratios.map((ratio) => ratio.head)];
  const notes: string[] = [];
  const rows = compared.map(({ label, slices }) => {
    if (typeof slices === 'string') {
      notes.push(`${label} was not measured: ${slices}`);
      return [label, 'not measured', ...head.slice(2).map(() => '-')];
    }
    const of = (measure: keyof Slice): Spread => spread(slices.map((slice) => slice[measure]));
    const middle = (measure: keyof Slice, digits: number): string => rounded(of(measure).median, digits);
    return [
      ...[label, middle('perSecond', 0), withQuartiles(of('cpuUs'), 1), rounded(of('cpuUs').min, 1)],
      ...[middle('storeCpuUs', 1), middle('storeCommands', 2), middle('p50Ms', 2), middle('p99Ms', 2)],
      ...[middle('rssMb', 0), `${rounded(of('refusedShare').median * 100, 1)} %`],
      rounded(of('errors').max, 0),
      ...ratios.map(({ measure, of: pairOf }) => {
        const [one, other] = pairOf(slices).map((list) => list.map((slice) => slice[measure]));
        return withQuartiles(pairedRatio(one ?? [], other ?? []), 2);
      }),
    ];
  });
  return { title, head, rows, notes: [...notes, ...moreNotes] };
}

function withQuartiles({ p25, median, p75 }: Spread, digits: number): string {
  return Number.isFinite(median)
    ? `${rounded(median, digits)} (${rounded(p25, digits)}-${rounded(p75, digits)})`
    : '-';
}
