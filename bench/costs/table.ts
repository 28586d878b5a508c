/** Makes the table of a scenario: medians of all rounds, and ratios of the first server to each in the same round. */
import { rounded, type Table } from '#bench/run/report.ts';
import { type Spread, spread } from '#bench/run/statistics.ts';
import type { Measured, Slice } from './measure.ts';
import type { Scenario } from './scenarios.ts';

const HEAD = [
  ...['', 'req/s', 'CPU µs', 'min', 'store µs', 'store cmds', 'p50 ms', 'p99 ms', 'rest MB', 'RSS MB'],
  ...['refused', 'errors', 'ours/theirs', 'with Redis', 'Redis alone'],
];

export function tableOf({ name, title }: Scenario, measured: ReadonlyMap<string, Measured>): Table {
  const ours = measured.values().next().value?.slices ?? [];
  const notes: string[] = [];
  const rows = [...measured.values()].map(({ label, slices, restRssMb = Number.NaN, failure }) => {
    if (failure !== undefined) {
      notes.push(`${label} was not measured: ${failure}`);
      return [label, 'not measured', ...HEAD.slice(2).map(() => '-')];
    }
    const of = (measure: keyof Slice): Spread => spread(slices.map((slice) => slice[measure]));
    const middle = (measure: keyof Slice, digits: number): string => rounded(of(measure).median, digits);
    // A disturbance of the machine usually affects both servers of a round alike.
    const ratio = (measure: keyof Slice): string =>
      withQuartiles(spread(ours.map((slice, i) => slice[measure] / (slices[i]?.[measure] ?? Number.NaN))), 2);
    return [
      ...[label, middle('perSecond', 0), withQuartiles(of('cpuUs'), 1), rounded(of('cpuUs').min, 1)],
      ...[middle('storeCpuUs', 1), middle('storeCommands', 2), middle('p50Ms', 2), middle('p99Ms', 2)],
      ...[rounded(restRssMb, 0), middle('rssMb', 0), `${rounded(of('refusedShare').median * 100, 1)} %`],
      ...[rounded(of('errors').max, 0), ratio('cpuUs'), ratio('totalCpuUs'), ratio('storeCpuUs')],
    ];
  });
  return { title: `${title} (${name}, ${ours.length} rounds)`, head: HEAD, rows, notes };
}

function withQuartiles({ p25, median, p75 }: Spread, digits: number): string {
  return Number.isFinite(median)
    ? `${rounded(median, digits)} (${rounded(p25, digits)}-${rounded(p75, digits)})`
    : '-';
}
