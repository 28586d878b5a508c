/** The table of one scenario. */
import { comparisonTable } from '#bench/run/comparison.ts';
import type { Slice } from '#bench/run/measure.ts';
import { rounded, type Table } from '#bench/run/report.ts';
import { median } from '#bench/run/statistics.ts';
import type { Measured } from './measure.ts';
import type { Scenario } from './scenarios.ts';

export function scenarioTable({ name, title, rate }: Scenario, measured: Measured): Table {
  const ours = slicesOf(measured, 'floodgate');
  const direct = slicesOf(measured, 'direct');
  const compared = [...measured.results].map(([{ label }, slices]) => ({ label, slices }));
  const against = (head: string, measure: keyof Slice) => ({
    ...{ head, measure, of: (theirs: readonly Slice[]) => [ours, theirs] as const },
  });
  const ratios = [
    ...[against('ours/theirs', 'cpuUs'), against('with Redis', 'totalCpuUs')],
    against('Redis alone', 'storeCpuUs'),
  ];
  const added = compared.flatMap(({ label, slices }) => {
    if (rate === null || typeof slices === 'string' || slices === direct || direct.length === 0) return [];
    return `${label} adds ${rounded(median(addedMs(slices, direct)), 3)} ms to the p50 of the upstream`;
  });
  return comparisonTable(`${title} (${name}, ${ours.length} rounds)`, compared, ratios, added);
}

/** @returns none if the peer was not measured */
export function slicesOf({ results }: Measured, name: string): readonly Slice[] {
  const [, slices = []] = [...results].find(([peer]) => peer.name === name) ?? [];
  return typeof slices === 'string' ? [] : slices;
}

/** The median latency in addition to that of the upstream itself in the same round. */
export function addedMs(slices: readonly Slice[], direct: readonly Slice[]): readonly number[] {
  return slices.map(({ p50Ms }, i) => p50Ms - (direct[i]?.p50Ms ?? Number.NaN));
}
