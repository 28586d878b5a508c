import { POLICY_ROWS } from '#gateway/policy/keys/policy-keys.ts';
import type { LoadedPolicy } from '#gateway/policy/policy-set.ts';

/** @returns the names of the values that differ of those that counters use */
export function differencesOf(a: LoadedPolicy, b: LoadedPolicy): string[] {
  return POLICY_ROWS.flatMap(([name, { counted, countedAs = name }]) =>
    counted === undefined || counted(a) === counted(b) ? [] : [countedAs],
  );
}

/** Policies that share a bucket must count in the same way. */
export function checkBucket(
  policy: LoadedPolicy,
  byBucket: Map<string, LoadedPolicy>,
  report: (message: string, fix: string) => void,
): void {
  const other = byBucket.get(policy.bucket);
  if (other === undefined) {
    byBucket.set(policy.bucket, policy);
    return;
  }
  const differs = differencesOf(policy, other);
  if (differs.length > 0)
    report(
      `bucket ${policy.bucket} is shared with ${other.name} in line ${other.line}, which has a different ${differs.join(' and ')}`,
      'make them equal or use another bucket',
    );
}
