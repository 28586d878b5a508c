/** Regulars are clients that were here before. All others are newcomers, who are a group. */
import type { Millis } from '#shared/clock.ts';
import { DAY_MS, type Group, type GroupRequest, NETWORK_SHARE, NEWCOMERS, type VisitRule } from './groups.ts';
import type { PolicySet } from './policy-set.ts';

export interface Newcomers extends Group, VisitRule {
  /** Whether this address never becomes a regular. null if each can. */
  readonly never: ((address: readonly number[]) => boolean) | null;
}

export function isNewcomers(group: Group | null): group is Newcomers {
  return group?.words === NEWCOMERS;
}

export function newcomersBy(rule: VisitRule & Pick<Newcomers, 'keys' | 'never'>): Newcomers {
  const isNever = ({ caller, logged }: GroupRequest): boolean => {
    const { bytes } = caller.address;
    // All clients without a readable address are one client. In a log no address is readable.
    if (bytes === null) return logged === undefined;
    return rule.never?.(bytes) === true;
  };
  return {
    ...rule,
    words: NEWCOMERS,
    actsFrom: null,
    classify(request, memory) {
      if (isNever(request)) return [];
      const client = request.caller.identity();
      return memory.isProven(client) ? null : [client];
    },
    replied(request, status, memory, network) {
      if (status < 200 || status >= 400 || isNever(request)) return;
      memory.visited(request.caller.identity(), rule, () => network(NETWORK_SHARE.identifier));
    },
  };
}

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
