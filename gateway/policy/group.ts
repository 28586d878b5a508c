/**
 * A group of clients, such as those who were not here before. A policy counts all clients, or only those of one group.
 * The core asks a group the questions of `Group`, and knows none by its name. groups.ts lists the words of all groups.
 */
import type { Identity } from '#gateway/identity/digest.ts';
import type { Identifier, NetworkIdentifier } from '#gateway/identity/identifier.ts';
import type { Millis } from '#shared/clock.ts';
import type { GroupWords } from './groups.ts';
import type { VisitRule } from './regulars.ts';

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
