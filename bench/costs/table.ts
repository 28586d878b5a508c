/** The table of one scenario: medians of all rounds, and ratios of pairs. */
import { PEERS } from '#bench/peers/all.ts';
import type { Slice } from '#bench/run/measure.ts';
import { pairedRatio, type Spread, spread } from '#bench/run/statistics.ts';
import { rounded, type Table } from '#bench/run/table.ts';
import type { Scenario } from './scenarios.ts';

const HEAD = [
  ...['', 'req/s', 'CPU µs', 'p25-p75', 'min', 'Redis µs', 'Redis cmds', 'p50 ms', 'p99 ms', 'RSS MB'],
  ...['refused', 'errors', 'ours/theirs', 'with Redis'],
];

export function scenarioTable(
  { name, title }: Scenario,
  slices: ReadonlyMap<string, readonly Slice[]>,
  notes: readonly string[],
): Table {
  const valuesOf = (peer: string, measure: keyof Slice): number[] =>
    (slices.get(peer) ?? []).map((slice) => slice[measure]);
  const labelOf = (peer: string): string =>
    PEERS.find((one) => one.name === peer)?.label ?? 'the upstream itself';
  const rows = [...slices.keys()].map((peer) => {
    const of = (measure: keyof Slice): Spread => spread(valuesOf(peer, measure));
    const ratio = (measure: keyof Slice): string =>
      rounded(pairedRatio(valuesOf('floodgate', measure), valuesOf(peer, measure)).median, 2);
    const { min, p25, median, p75 } = of('cpuUs');
    return [
      ...[labelOf(peer), rounded(of('perSecond').median, 0), rounded(median, 1)],
      ...[`${rounded(p25, 1)}-${rounded(p75, 1)}`, rounded(min, 1), rounded(of('storeCpuUs').median, 1)],
      ...[rounded(of('storeCommands').median, 2), rounded(of('p50Ms').median, 2)],
      ...[rounded(of('p99Ms').median, 2), rounded(of('rssMb').median, 0)],
      `${rounded(of('refusedShare').median * 100, 1)} %`,
      ...[rounded(of('errors').max, 0), ratio('cpuUs'), ratio('totalCpuUs')],
    ];
  });
  const rounds = slices.get('floodgate')?.length ?? 0;
  return { title: `${title} (${name}, ${rounds} rounds)`, head: HEAD, rows, notes };
}
