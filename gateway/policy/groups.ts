/**
 * Groups of clients, such as those who were not here before. A policy counts all clients, or only those of one group.
 * The core asks a group the questions of `Group`, and knows none by its name.
 */
import type { Identity } from '#gateway/identity/digest.ts';
import type { AddressIdentifier, Identifier, NetworkIdentifier } from '#gateway/identity/identifier.ts';
import type { Millis } from '#shared/clock.ts';

/** A client becomes a regular by good replies on enough different days. */
export interface VisitRule {
  /** Number of different days, at least 2. */
  readonly visits: number;
  /** The days lie within so many days, of which the last one is today; at most HISTORY_DAYS. */
  readonly days: number;
  /** Maximum number of new clients per day whose first visit is stored. */
  readonly newPerDay: number;
}

/** A request, as groups see it. */
export interface GroupRequest {
  readonly caller: {
    readonly address: { readonly bytes: readonly number[] | null };
    identity(): Identity;
  };
  /** See IdentifiableRequest. */
  readonly logged?: unknown;
}

/** A group asks here what is known of clients. The limiter keeps it, for all gateways. */
export interface GroupMemory {
  isProven(identity: Identity): boolean;
  prove(identity: Identity): void;
  withdraw(identity: Identity): void;
  visited(client: Identity, rule: VisitRule, network: () => Identity | null): void;
}

export interface Group {
  readonly words: GroupWords;
  /** Clients with a proven key of these identifiers are not in the group. */
  readonly keys: readonly Identifier[];
  /**
   * The policies act from this time, because nobody can be told apart before. `unknown`: it depends on a store that was
   * not reached yet. null if they act.
   */
  readonly actsFrom: Millis | 'unknown' | null;
  /**
   * The core asks this before each charge.
   *
   * @returns null if the client is not in the group. Else the identities of which one frees it from the charge, if the
   * store knows that it is proven
   */
  classify(request: GroupRequest, memory: Pick<GroupMemory, 'isProven'>): readonly Identity[] | null;
  /**
   * It is told of each reply to a request on a route of such policies.
   *
   * @param network returns the client's network; null if it is in none
   */
  replied(
    request: GroupRequest,
    status: number,
    memory: GroupMemory,
    network: (identifier: NetworkIdentifier) => Identity | null,
  ): void;
}

/** All clients who are no regulars, and what operators, clients and metrics are told about this group. */
export const NEWCOMERS = {
  /** The key of a policy with the limit of the group, and the end of the names of such limits. */
  key: 'newcomers',
  one: 'newcomer',
  together: 'all newcomers',
  /** Why a client is not in it. */
  outside: 'the client is a regular',
  why: 'The client is a newcomer: it had no good replies on enough different days lately, or its network is under regulars.never. All newcomers share this limit; regulars are not counted.',
  /** The code for those whom the limit denies, and the words of its page. */
  code: 'gateway_newcomers',
  heading: 'Many new visitors at the moment',
  sentence: 'This site is letting new visitors in one after the other. You have done nothing wrong.',
  metrics: {
    /** Admitted requests on the routes of such policies, by the label `client`. */
    visitors: {
      name: 'floodgate_visitors_total',
      help: 'Admitted requests on routes of policies with newcomers, by whether the client is a regular.',
      inside: 'newcomer',
      outside: 'regular',
    },
    denied: {
      name: 'floodgate_newcomers_denied_total',
      help: 'Requests that limits for newcomers have denied, each once; in shadow mode, that they would have denied.',
    },
    actsFrom: {
      name: 'floodgate_newcomers_act_from_timestamp_seconds',
      help: 'From when a policy with newcomers denies anybody, while enough history does not exist; -1 if that is unknown; else 0.',
    },
  },
} as const;

export const GROUPS = [NEWCOMERS] as const;

export type GroupWords = (typeof GROUPS)[number];

export type GroupKey = GroupWords['key'];
export type GroupCode = GroupWords['code'];

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
