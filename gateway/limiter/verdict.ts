/** A policy says this of a request, to the decision and to the reply. */
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis, Seconds } from '#shared/clock.ts';
import type { RandomInt } from '#shared/random-int.ts';
import type { Bucket } from './charge.ts';

/** The verdict of one policy on one request; a decision has one per policy. */
export interface Verdict {
  readonly policy: Policy;
  /** The maximum number of units that the client can use at once, from the policy or an override. */
  readonly capacity: number;
  /** The maximum in a window. It differs from the capacity for a token bucket with a burst. */
  readonly limit: number;
  /** Units left for other requests after this one. */
  readonly remaining: number;
  /** Admitted: time until all of the capacity is available again. Denied: time until there is room for such a request. */
  readonly resetMs: Millis;
}

/** The verdict of an exhausted policy. */
export interface Violation extends Verdict {
  /** The exhausted bucket. */
  readonly bucket: Bucket;
  /** Units in use before this request. */
  readonly used: number;
  /** The capacity, or this process's share of it. */
  readonly share: number;
  /** Whether the request costs more than the whole limit, so that waiting does not help. */
  readonly canNeverPass: boolean;
}

/**
 * Returns the number of whole seconds until a denied request has room again. It is the largest of the denying policies,
 * and at least 1. The random part of a policy is added to its own time, so the sum is never too short.
 *
 * @param randomInt null for the exact time
 */
export function retryAfterSeconds(
  violated: readonly Pick<Verdict, 'policy' | 'resetMs'>[],
  randomInt: RandomInt | null,
): Seconds {
  let longest = 1;
  for (const { policy, resetMs } of violated) {
    const exact = Math.max(1, Math.ceil(resetMs / 1000));
    const isExact = randomInt === null || policy.retryJitter === 0;
    longest = Math.max(longest, isExact ? exact : exact + randomInt(policy.retryJitter + 1));
  }
  return longest;
}
