import type { PolicySet } from './policy.ts';

/** Puts policies into shadow mode for which operators have run `floodgate shadow`. @param buckets of these policies */
export function shadowed(set: PolicySet, buckets: ReadonlyMap<string, unknown>): PolicySet {
  if (!set.policies.some(({ bucket, mode }) => mode === 'enforce' && buckets.has(bucket))) return set;
  return {
    ...set,
    policies: set.policies.map((policy) =>
      buckets.has(policy.bucket) ? { ...policy, mode: 'shadow' } : policy,
    ),
  };
}
