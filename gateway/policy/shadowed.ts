/** A policy file as it holds while operators keep some of its policies from denying. */
import type { PolicySet } from './policy.ts';

/** @param buckets of the policies that count and report, and deny nothing */
export function shadowed(set: PolicySet, buckets: ReadonlyMap<string, unknown>): PolicySet {
  if (!set.policies.some(({ bucket, mode }) => mode === 'enforce' && buckets.has(bucket))) return set;
  return {
    ...set,
    policies: set.policies.map((policy) =>
      buckets.has(policy.bucket) ? { ...policy, mode: 'shadow' } : policy,
    ),
  };
}
