/** The table of one scenario: medians of all rounds, and ratios of pairs. */
import type { Peer } from '#bench/peers/peer.ts';
import type { Slice } from '#bench/run/measure.ts';
import { rounded, type Table } from '#bench/run/report.ts';
import { pairedRatio, type Spread, spread } from '#bench/run/statistics.ts';
import type { Measured } from './measure.ts';
import type { Scenario } from './scenarios.ts';

const HEAD = [
  ...['', 'req/s', 'CPU µs', 'min', 'Redis µs', 'Redis cmds', 'p50 ms', 'p99 ms', 'RSS MB', 'refused'],
  ...['errors', 'ours/theirs', 'with Redis', 'Redis alone'],
];

export function scenarioTable(
  { name, title }: Scenario,
  peers: readonly Peer[],
  { slices, notes }: Measured,
): Table {
  const valuesOf = (peer: string, measure: keyof Slice): number[] =>
    (slices.get(peer) ?? []).map((slice) => slice[measure]);
  const labelOf = (peer: string): string =>
    peers.find((one) => one.name === peer)?.label ?? 'the upstream itself';
  const rows = [...slices.keys()].map((peer) => {
    const of = (measure: keyof Slice): Spread => spread(valuesOf(peer, measure));
    const median = (measure: keyof Slice, digits: number): string => rounded(of(measure).median, digits);
    const ratio = (measure: keyof Slice): string =>
      withQuartiles(pairedRatio(valuesOf('floodgate', measure), valuesOf(peer, measure)), 2);
    return [
      ...[labelOf(peer), median('perSecond', 0), withQuartiles(of('cpuUs'), 1), rounded(of('cpuUs').min, 1)],
      ...[median('storeCpuUs', 1), median('storeCommands', 2), median('p50Ms', 2), median('p99Ms', 2)],
      ...[
        median('rssMb', 0),
        `${rounded(of('refusedShare').median * 100, 1)} %`,
        rounded(of('errors').max, 0),
      ],
      ...[ratio('cpuUs'), ratio('totalCpuUs'), ratio('storeCpuUs')],
    ];
  });
  const rounds = slices.get('floodgate')?.length ?? 0;
  return { title: `${title} (${name}, ${rounds} rounds)`, head: HEAD, rows, notes };
}

function withQuartiles({ p25, median, p75 }: Spread, digits: number): string {
  return Number.isFinite(median)
    ? `${rounded(median, digits)} (${rounded(p25, digits)}-${rounded(p75, digits)})`
    : '-';
}
