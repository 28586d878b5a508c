import type { AlgorithmName } from '#gateway/algorithms/algorithm.ts';
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import type { Report } from '#gateway/policy/problems.ts';
import type { Millis } from '#shared/clock.ts';
import { policyKey } from './key.ts';
import { LIMIT_MAX, units } from './schema-parts.ts';

export const algorithm = policyKey({
  schema: {
    enum: ['fixed-window', 'sliding-window', 'token-bucket'],
    description:
      'fixed-window (the default), sliding-window to avoid a double limit at the edge of a window, or token-bucket to refill steadily',
  },
  default: 'fixed-window',
  more: 'See [Algorithms](#algorithms)',
  counted: ({ algorithm }) => algorithm,
  restarts: () => true,
});

export const burst = policyKey({
  schema: {
    ...units,
    description: `with algorithm: token-bucket, how many requests may come at once, a whole number from 1 to ${LIMIT_MAX}; the limit unless given`,
  },
  without: 'the limit',
  counted: ({ capacity, limit }) => (capacity === limit ? null : capacity),
});

interface WindowLimit {
  readonly algorithm: AlgorithmName;
  readonly limit: number;
  readonly burst: number | undefined;
  readonly window: string;
}

/**
 * Checks the algorithm. Sliding windows and token buckets count requests times milliseconds, which must stay a safe
 * integer.
 */
export function checkAlgorithm(
  { algorithm, limit, burst, window }: WindowLimit,
  windowMs: Millis,
  report: Report,
): void {
  if (burst !== undefined && algorithm !== 'token-bucket') {
    report(['burst'], 'burst is only for algorithm: token-bucket', 'remove it, or add that line', 'key');
    return;
  }
  const limitMax = ALGORITHMS[algorithm].limitMax(windowMs);
  for (const [key, value] of Object.entries({ limit, burst: burst ?? 0 }))
    if (value > limitMax)
      report(
        [key],
        `${key} ${value} is more than ${algorithm} can count in ${window}`,
        `write at most ${limitMax}, or a shorter window`,
      );
}

/** The maximum of a limit of different values. Redis stores all of them, and gateways remember some. */
export const DISTINCT_MAX = 1000;

export function tooManyValues(limit: number): readonly [message: string, fix: string] {
  return [
    `distinct remembers at most ${DISTINCT_MAX} values of a client, not ${limit}`,
    `write at most ${DISTINCT_MAX}`,
  ];
}
