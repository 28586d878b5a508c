/** One slice of load on one target, whatever drives it. */
import type { Scenario } from '../scenarios.ts';

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  /** Replies other than 2xx and 3xx. */
  readonly refused: number;
  /** Connections that broke, requests without a reply. */
  readonly errors: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export type Driver = (port: number, scenario: Scenario, seconds: number) => Promise<LoadResult>;

/** Keys look like real ones; which is drawn is chance, but the set is the same for every target and round. */
export function keyOf(number: number): string {
  return `fbk_bench_${String(number).padStart(22, '0')}`;
}

export function bodyOf(scenario: Scenario): string {
  return scenario.bodyBytes === 0 ? '' : `{"data":"${'x'.repeat(Math.max(0, scenario.bodyBytes - 11))}"}`;
}
