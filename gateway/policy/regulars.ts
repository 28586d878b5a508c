/** Regulars are clients that were here before. All others are newcomers, who are a group. */
import type { AddressIdentifier, NetworkIdentifier } from '#gateway/identity/identifier.ts';
import type { Millis } from '#shared/clock.ts';
import { type Group, type GroupRequest, NEWCOMERS, type VisitRule } from './groups.ts';
import type { PolicySet } from './policy-set.ts';

/** Number of days that a history can hold. */
export const HISTORY_DAYS = 31;
export const DAY_MS: Millis = 86_400_000;

/**
 * A share of the limit that all clients of a group have together: one client can use a twentieth of it, and all clients of
 * one IPv6 network a quarter. Otherwise one of them could keep out the others. Each share is a policy of its own, with the
 * mode and the conditions of the whole limit. `newPerDay` counts each client once, so it only has the share of a network.
 */
export interface Share {
  /** End of the names of its policies and counters. */
  readonly name: string;
  readonly identifier: AddressIdentifier | NetworkIdentifier;
  /** The share is the limit divided by this number. */
  readonly oneIn: number;
}

const IPV6_BYTES = 16;
/** A customer usually gets a /48 or less, and can use any address in it. */
const NETWORK_BYTES = 6;

/** IPv4 addresses are in no such network, because their owners have few of them. */
const IPV6_NETWORK: NetworkIdentifier = {
  name: 'IPv6 /48',
  kind: 'network',
  networks: {
    find: (address) =>
      address.length === IPV6_BYTES ? address.slice(0, NETWORK_BYTES).join('.') : undefined,
  },
};

export const NETWORK_SHARE = { name: 'network', identifier: IPV6_NETWORK, oneIn: 4 } satisfies Share;

export const SHARES: readonly Share[] = [
  { name: 'client', identifier: { name: 'address', kind: 'address', ipv6Prefix: 64 }, oneIn: 20 },
  NETWORK_SHARE,
];

export function sharedBy({ oneIn }: Pick<Share, 'oneIn'>, limit: number): number {
  return Math.max(1, Math.floor(limit / oneIn));
}

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
