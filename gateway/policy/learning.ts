/** Policies for newcomers act only when enough days of history exist. */
import type { Millis } from '#shared/clock.ts';
import { isNewcomers, type Newcomers } from './newcomers.ts';
import type { PolicySet } from './policy-set.ts';
import { DAY_MS } from './regulars.ts';

/** Returns who is a regular for the policies of a file; null if none asks for it. */
export function regularsIn({ policies }: Pick<PolicySet, 'policies'>): Newcomers | null {
  return policies.map(({ onlyFor }) => onlyFor).find(isNewcomers) ?? null;
}

/**
 * Puts such policies in shadow mode while nobody can be a regular yet: in a new installation, and after the store has
 * lost its data. Otherwise nearly all clients would be denied then.
 *
 * @param since when the histories began; null if it is unknown. Not its day, of which a part may be missing
 */
export function whileLearning(set: PolicySet, since: Millis | null, now: Millis): PolicySet {
  const rule = regularsIn(set);
  if (rule === null) return set;
  const actsFrom = since === null ? 'unknown' : since + rule.visits * DAY_MS;
  if (actsFrom !== 'unknown' && actsFrom <= now) return set;
  return {
    ...set,
    policies: set.policies.map((policy) =>
      isNewcomers(policy.onlyFor)
        ? { ...policy, mode: 'shadow', onlyFor: { ...policy.onlyFor, actsFrom } }
        : policy,
    ),
  };
}
