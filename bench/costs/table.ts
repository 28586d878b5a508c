/** The table of one scenario: medians of all rounds, and ratios of pairs. */

import type { Slice } from '#bench/run/measure.ts';
import { rounded, type Table } from '#bench/run/report.ts';
import { median, pairedRatio, type Spread, spread } from '#bench/run/statistics.ts';
import type { Measured } from './measure.ts';
import type { Scenario } from './scenarios.ts';

const HEAD = [
  ...['', 'req/s', 'CPU µs', 'min', 'Redis µs', 'Redis cmds', 'p50 ms', 'p99 ms', 'RSS MB', 'refused'],
  ...['errors', 'ours/theirs', 'with Redis', 'Redis alone'],
];

export function scenarioTable({ name, title, rate }: Scenario, { results }: Measured): Table {
  const ours = slicesOf({ results }, 'floodgate');
  const direct = slicesOf({ results }, 'direct');
  const notes: string[] = [];
  const rows = [...results].map(([{ label }, slices]) => {
    if (typeof slices === 'string') {
      notes.push(`${label} was not measured: ${slices}`);
      return [label, 'not measured', ...HEAD.slice(2).map(() => '-')];
    }
    const of = (measure: keyof Slice): Spread => spread(slices.map((slice) => slice[measure]));
    const middle = (measure: keyof Slice, digits: number): string => rounded(of(measure).median, digits);
    const ratio = (measure: keyof Slice): string =>
      withQuartiles(
        pairedRatio(
          ours.map((slice) => slice[measure]),
          slices.map((slice) => slice[measure]),
        ),
        2,
      );
    if (rate !== null && direct !== slices && direct.length > 0)
      notes.push(
        `${label} adds ${rounded(median(addedMs(slices, direct)), 3)} ms to the p50 of the upstream`,
      );
    return [
      ...[label, middle('perSecond', 0), withQuartiles(of('cpuUs'), 1), rounded(of('cpuUs').min, 1)],
      ...[middle('storeCpuUs', 1), middle('storeCommands', 2), middle('p50Ms', 2), middle('p99Ms', 2)],
      ...[middle('rssMb', 0), `${rounded(of('refusedShare').median * 100, 1)} %`],
      ...[rounded(of('errors').max, 0), ratio('cpuUs'), ratio('totalCpuUs'), ratio('storeCpuUs')],
    ];
  });
  return { title: `${title} (${name}, ${ours.length} rounds)`, head: HEAD, rows, notes };
}

/** @returns none if the peer was not measured */
export function slicesOf({ results }: Pick<Measured, 'results'>, name: string): readonly Slice[] {
  const [, slices = []] = [...results].find(([peer]) => peer.name === name) ?? [];
  return typeof slices === 'string' ? [] : slices;
}

/** What the median request takes longer than one to the upstream itself in the same round. */
export function addedMs(slices: readonly Slice[], direct: readonly Slice[]): readonly number[] {
  return slices.map(({ p50Ms }, i) => p50Ms - (direct[i]?.p50Ms ?? Number.NaN));
}

function withQuartiles({ p25, median, p75 }: Spread, digits: number): string {
  return Number.isFinite(median)
    ? `${rounded(median, digits)} (${rounded(p25, digits)}-${rounded(p75, digits)})`
    : '-';
}
