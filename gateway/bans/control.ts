/**
 * The interface for operators: reads and clears the counters of an identity, bans it, and puts policies in shadow mode.
 * With a store, changes apply to all replicas (store-control.ts). Without one, they apply to the only process
 * (memory-control.ts). A change is in force in all processes of this gateway when its call returns, and in other
 * gateways within a second.
 */

import type { CounterState } from '#gateway/algorithms/algorithm.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { History } from '#gateway/limiter/history.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { PolicyBan } from '#gateway/policy/policy.ts';
import type { StoreReport } from '#gateway/store/report.ts';
import type { Millis } from '#shared/clock.ts';
import { BANS_MAX, type Ban, type BanChange, type BanList } from './bans.ts';
import { SHADOWS_MAX, type ShadowChange } from './shadows.ts';

/** The state of the counters of one identity at one time. */
export interface Look {
  /** Time of the reading, on the clock that windows use. Milliseconds since the epoch. */
  readonly now: Millis;
  /** One state for each counter. */
  readonly states: readonly CounterState[];
  /** For each counter, whether the value was used before in the window. */
  readonly used: readonly boolean[];
  /** Expiry of the credential's proof, possibly in the past. null for an unproven credential or an address. */
  readonly provenUntil: Millis | null;
}

/** Counters that an operator has cleared in the store. */
interface CounterReset {
  /** Digest of the client. */
  readonly cleared: string;
}

export type ControlChange = BanChange | ShadowChange | CounterReset;

export interface Control {
  salt(): Promise<string>;
  /** Returns the names of the processes that share the counters. */
  replicas(): Promise<readonly string[]>;
  /**
   * @param limits the limit of this identity for each counter; default: the limits of the policies
   * @param values the digest of a value for each counter of different values; default: none
   */
  look(
    identity: Identity,
    counters: readonly Counter[],
    limits?: readonly number[],
    values?: readonly (string | null)[],
  ): Promise<Look>;
  /** Clears the counters. @returns how many counters were not empty */
  reset(identity: Identity, counters: readonly Counter[]): Promise<number>;
  /** Bans the identity, and replaces an existing ban. @throws TooManyBansError */
  ban(identity: Identity, forMs: Millis, reason: string): Promise<Ban>;
  /**
   * Counts denials of a client by a policy with `ban`. When there are enough, it bans the client. It does not replace a
   * longer ban, or a ban by an operator. Until the end of the new ban, no further denials count. So a client whose ban
   * an operator lifts is not banned again at once.
   *
   * @param reason reason of the ban; empty in shadow mode, which counts but does not ban
   * @returns the length of the ban; 0 if there are not enough denials
   * @throws TooManyBansError although some room is left for bans by operators
   */
  countDenials(identity: Identity, ban: PolicyBan, count: number, reason: string): Promise<Millis>;
  /** @returns whether there was a ban */
  unban(identity: Identity): Promise<boolean>;
  banOf(identity: Identity): Promise<Ban | null>;
  /** Lists active bans, newest first. @param countMax maximum length of the list */
  listBans(countMax: number): Promise<BanList>;
  /**
   * Puts the policies of this bucket in shadow mode: they count and report but do not deny. Replaces an existing shadow
   * mode.
   *
   * @returns the end of the shadow mode
   * @throws TooManyShadowsError
   */
  shadow(bucket: string, forMs: Millis): Promise<Millis>;
  /** Ends shadow mode. @returns whether the policies were in shadow mode */
  unshadow(bucket: string): Promise<boolean>;
  /** Returns the end of each shadow mode, by bucket. */
  shadows(): Promise<ReadonlyMap<string, Millis>>;
  /**
   * Returns when the histories of clients began; null if none are kept.
   *
   * @param name of the histories, see HistoriesInUse
   * @param haveEnded without a store: they begin again, because nobody has used them. A store knows this itself
   */
  historySince(name: string, haveEnded?: boolean): Promise<Millis | null>;
  /** Returns the days on which a client had good replies; null if none are stored. */
  historyOf(client: Identity): Promise<History | null>;
  /** @returns null without a store @throws ControlUnavailableError */
  storeReport(): Promise<StoreReport | null>;
  close(): void;
}

/** The store is unavailable. The message gives the reason. */
export class ControlUnavailableError extends Error {
  /** Whether the call was sent but not answered. Then the store may have executed it. */
  readonly mayBeDone: boolean;

  constructor(
    message: string,
    { mayBeDone = false, ...options }: ErrorOptions & { mayBeDone?: boolean } = {},
  ) {
    super(message, options);
    this.mayBeDone = mayBeDone;
  }
}

export class TooManyShadowsError extends Error {
  constructor() {
    super(`${SHADOWS_MAX} policies are already in shadow mode; end some of them, or edit the policy file`);
    this.name = 'TooManyShadowsError';
  }
}

export class TooManyBansError extends Error {
  constructor(max = BANS_MAX) {
    super(`there are already ${max} bans; lift some of them, or wait until one ends`);
    this.name = 'TooManyBansError';
  }
}
