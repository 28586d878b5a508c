/** Policies that operators have put in shadow mode. Policies that share a bucket must have the same mode. */
import type { Policy } from '#gateway/policy/policy.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { Millis } from '#shared/clock.ts';

export const SHADOW_DAYS_MAX = 7;
export const SHADOW_MS_MAX: Millis = SHADOW_DAYS_MAX * 86_400_000;

/** Returns the policies, with those of the given buckets in shadow mode, and the shares of their limits. */
export function shadowed(set: PolicySet, buckets: ReadonlyMap<string, unknown>): PolicySet {
  const isShadowed = ({ bucket, shareOf }: Policy): boolean =>
    buckets.has(bucket) || (shareOf !== null && buckets.has(shareOf));
  if (!set.policies.some((policy) => policy.mode !== 'shadow' && isShadowed(policy))) return set;
  return {
    ...set,
    policies: set.policies.map((policy) => (isShadowed(policy) ? { ...policy, mode: 'shadow' } : policy)),
  };
}
