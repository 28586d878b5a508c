/**
 * Which values of a policy its counter uses. Policies that share a bucket must have the same, and operators are told
 * what an edited file changes for the counters in use.
 */
import { POLICY_ROWS } from '#gateway/policy/keys/policy-keys.ts';
import type { LoadedPolicy, PolicySet } from '#gateway/policy/policy-set.ts';

const SHOWN_MAX = 20;

type Rows = typeof POLICY_ROWS;

function differingRows(a: LoadedPolicy, b: LoadedPolicy): Rows {
  return POLICY_ROWS.filter(([, { counted }]) => counted?.(a) !== counted?.(b));
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
  const differs = differingRows(policy, other).map(([name, { countedAs = name }]) => countedAs);
  if (differs.length > 0)
    report(
      `bucket ${policy.bucket} is shared with ${other.name} in line ${other.line}, which has a different ${differs.join(' and ')}`,
      'make them equal or use another bucket',
    );
}

/** @returns a sentence for each policy that counts otherwise than before, at most 21 */
export function changesOf(before: PolicySet, after: PolicySet): string[] {
  const old = new Map(before.policies.map((policy) => [policy.name, policy]));
  const changes = after.policies.flatMap((policy) => {
    const was = old.get(policy.name);
    return was === undefined ? [] : changeOf(was, policy);
  });
  const more = changes.length - SHOWN_MAX;
  return more > 0 ? [...changes.slice(0, SHOWN_MAX), `${more} more`] : changes;
}

function changeOf(was: LoadedPolicy, policy: LoadedPolicy): string[] {
  const changed = differingRows(was, policy);
  if (changed.length === 0) return [];
  const keys = changed.map(([name]) => name).join(' and ');
  const isNew = changed.some(([, { restarts }]) => restarts?.(was, policy) ?? false);
  const counters = isNew ? 'start from zero' : 'keep what they have counted';
  return [`${policy.name} has another ${keys}: its counters ${counters}`];
}
