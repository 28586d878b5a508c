/** Tells operators what an edited file changes for the counters in use. */
import { POLICY_ROWS } from '#gateway/policy/keys/policy-keys.ts';
import type { LoadedPolicy, PolicySet } from '#gateway/policy/policy-set.ts';

const SHOWN_MAX = 20;

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
  const changed = POLICY_ROWS.filter(([, { counted }]) => counted?.(was) !== counted?.(policy));
  if (changed.length === 0) return [];
  const keys = changed.map(([name]) => name).join(' and ');
  const isNew = changed.some(([, { restarts }]) => restarts?.(was, policy) ?? false);
  return [
    isNew
      ? `${policy.name} has another ${keys}: its counters start from zero`
      : `${policy.name} has another ${keys}: its counters keep what they have counted`,
  ];
}
