/** Newcomers: the group of all clients who are no regulars. */
import type { Group, GroupRequest } from './group.ts';
import { NEWCOMERS } from './groups.ts';
import type { VisitRule } from './regulars.ts';
import { NETWORK_SHARE } from './shares.ts';

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
