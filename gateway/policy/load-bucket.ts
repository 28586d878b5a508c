import type { Policy } from './policy.ts';

/** Properties that must be equal in policies that share a bucket, with their keys in the file. */
const SHARED = [
  ['identifier', 'identifier'],
  ['limit', 'limit'],
  ['overrides', 'overrides'],
  ['windowMs', 'window'],
  ['algorithm', 'algorithm'],
  ['capacity', 'burst'],
  ['count', 'count'],
  ['cost', 'cost.replyHeader'],
  ['rollout', 'rollout'],
  ['mode', 'mode'],
  ['onStoreFailure', 'onStoreFailure'],
  ['headers', 'headers'],
  ['ban', 'ban'],
] as const satisfies readonly (readonly [keyof Policy, string])[];

export function checkBucket(
  policy: Policy,
  byBucket: Map<string, Policy>,
  report: (message: string, fix: string) => void,
): void {
  const other = byBucket.get(policy.bucket);
  if (other === undefined) {
    byBucket.set(policy.bucket, policy);
    return;
  }
  const differs = SHARED.filter(([key]) => meaningIn(policy, key) !== meaningIn(other, key));
  // The default burst is the limit, so a difference in both is reported as a different limit only.
  const reported = differs.filter(([key]) => key !== 'capacity' || policy.limit === other.limit);
  if (differs.length > 0) {
    const what = reported.map(([, name]) => name).join(' and ');
    report(
      `bucket ${policy.bucket} is shared with ${other.name} in line ${other.line}, which has a different ${what}`,
      'make them equal or use another bucket',
    );
  }
}

function meaningIn(policy: Policy, key: (typeof SHARED)[number][0]): unknown {
  if (key === 'rollout') return policy.rollout?.percent;
  if (key === 'identifier') return policy.identifier.name;
  // Only costs that replies report must be equal in policies that share a bucket.
  if (key === 'cost') return policy.cost.kind === 'reply-header' && policy.cost.header;
  if (key === 'ban') return JSON.stringify(policy.ban);
  return key === 'overrides' ? policy.overrides?.version : policy[key];
}
