/** Slices -> what is reported. */
import type { Slice } from '../measure.ts';
import type { ScenarioResult, TargetResult } from '../runner.ts';
import type { PeerName } from '../scenarios.ts';
import { pairedRatio, type Spread, spread } from '../statistics.ts';

export type Measure = keyof Slice;

export const MEASURES: readonly Measure[] = [
  'requestsPerSecond',
  'cpuUs',
  'redisCpuUs',
  'totalCpuUs',
  'redisCommands',
  'p50Ms',
  'p99Ms',
  'rssMb',
  'refusedShare',
  'errors',
];

export interface TargetSummary {
  readonly name: PeerName;
  readonly label: string;
  readonly restRssMb: number;
  readonly figures: Readonly<Record<Measure, Spread>>;
  /** Floodgate's CPU per request divided by this target's, of the same rounds; 1 for Floodgate itself. */
  readonly ratio: { readonly process: Spread; readonly withRedis: Spread };
}

export interface ScenarioSummary {
  readonly name: string;
  readonly title: string;
  readonly rounds: number;
  readonly targets: readonly TargetSummary[];
  readonly leftOut: readonly string[];
}

export function valuesOf(target: TargetResult, measure: Measure): number[] {
  return target.slices.map((slice) => slice[measure]);
}

export function summarise({ scenario, targets, leftOut }: ScenarioResult): ScenarioSummary {
  const ours = targets.find(({ name }) => name === 'floodgate');
  const ratio = (target: TargetResult, measure: Measure): Spread =>
    pairedRatio(ours === undefined ? [] : valuesOf(ours, measure), valuesOf(target, measure));
  return {
    name: scenario.name,
    title: scenario.title,
    rounds: targets[0]?.slices.length ?? 0,
    leftOut,
    targets: targets.map((target) => ({
      name: target.name,
      label: target.label,
      restRssMb: target.restRssMb,
      figures: Object.fromEntries(
        MEASURES.map((measure) => [measure, spread(valuesOf(target, measure))]),
      ) as Record<Measure, Spread>,
      ratio: { process: ratio(target, 'cpuUs'), withRedis: ratio(target, 'totalCpuUs') },
    })),
  };
}
