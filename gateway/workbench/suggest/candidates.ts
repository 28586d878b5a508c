/** Proposes limits: round numbers near the real traffic of clients. */
import type { Frequencies } from './frequencies.ts';

export interface Candidate {
  /** Limit of requests in a window. */
  readonly limit: number;
  /** Number of clients with more requests in some window. It is an estimate if only a sample was followed. */
  readonly identitiesDenied: number;
}

/** A lower limit would deny somebody who clicks twice. */
export const LIMIT_MIN = 5;
const ROUND = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

/** Returns the next round number that is at least this one. */
function roundUp(value: number): number {
  let power = 1;
  while (power * 10 < value) power *= 10;
  for (const step of ROUND) {
    const round = step * power;
    if (round >= value && Number.isInteger(round)) return round;
  }
  return power * 10;
}

/** Returns twice the number that 99 of 100 windows need. */
export function suggestedLimit(p99: number): number {
  return roundUp(Math.max(LIMIT_MIN, 2 * p99));
}

/**
 * @param most for each client, the requests of its busiest window
 * @param oneIn inverse of the sampling rate of clients
 */
export function candidatesOf(
  { p95, p99, max }: { readonly p95: number; readonly p99: number; readonly max: number },
  most: Frequencies,
  oneIn: number,
): readonly Candidate[] {
  const limits = new Set([roundUp(p95), roundUp(p99), suggestedLimit(p99), roundUp(max)]);
  return [...limits]
    .sort((a, b) => a - b)
    .map((limit) => ({ limit, identitiesDenied: most.above(limit) * oneIn }));
}
