/**
 * Changes by operators: they read and clear the counters of an identity, ban it, or put policies in shadow mode. A
 * change is in the store for all replicas (store-control.ts), or in the only process (memory-control.ts).
 */

import type { Identity } from '#gateway/identity/digest.ts';
import type { CounterState } from '#gateway/limiter/algorithms/algorithm.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { PolicyBan } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import { BANS_MAX, type Ban, type BanChange, type BanList } from './bans.ts';
import { SHADOWS_MAX, type ShadowChange } from './shadows.ts';
import type { StoreReport } from './store-report.ts';

/** The counters of one identity at one time. */
export interface Look {
  /** Time on the clock of the windows; milliseconds since the epoch. */
  readonly now: Millis;
  /** One state for each counter. */
  readonly states: readonly CounterState[];
  /** When the proof of the credential expires, possibly in the past. null if it is unproven, or an address. */
  readonly provenUntil: Millis | null;
}

export type ControlChange = BanChange | ShadowChange;

export interface Control {
  salt(): Promise<string>;
  /** @param limits of this identity for each counter. Default: those of the policies */
  look(identity: Identity, counters: readonly Counter[], limits?: readonly number[]): Promise<Look>;
  /** Clears the counters. Every process forgets them within a second. @returns how many counters were not empty */
  reset(identity: Identity, counters: readonly Counter[]): Promise<number>;
  /** Replaces an existing ban. @throws TooManyBansError */
  ban(identity: Identity, forMs: Millis, reason: string): Promise<Ban>;
  /**
   * Counts denials of a client by a policy with `ban`, and bans the client when there are enough. A longer ban, or one by an
   * operator, stays as it is.
   * Until the new ban would end, no denial counts, so whom an operator lets in again stays in.
   *
   * @param reason '': shadow mode, only count
   * @returns the length of the ban; 0: none is due
   * @throws TooManyBansError which leaves some room for bans by operators
   */
  countDenials(identity: Identity, ban: PolicyBan, count: number, reason: string): Promise<Millis>;
  /** @returns whether there was a ban */
  unban(identity: Identity): Promise<boolean>;
  banOf(identity: Identity): Promise<Ban | null>;
  /** Lists active bans. @param countMax of the list */
  listBans(countMax: number): Promise<BanList>;
  /**
   * Puts the policies of this bucket in shadow mode: they count and report but do not deny. Replaces an existing shadow
   * mode.
   *
   * @returns when it ends
   * @throws TooManyShadowsError
   */
  shadow(bucket: string, forMs: Millis): Promise<Millis>;
  /** @returns whether it was in shadow mode */
  unshadow(bucket: string): Promise<boolean>;
  /** Returns the end of each shadow mode, by bucket. */
  shadows(): Promise<ReadonlyMap<string, Millis>>;
  /** null without a store. @throws ControlUnavailableError */
  storeReport(): Promise<StoreReport | null>;
  close(): void;
}

/** The store is unavailable. The message gives the reason. */
export class ControlUnavailableError extends Error {
  /** The answer is missing, so the store may have executed the call. */
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
    super(`${SHADOWS_MAX} policies are in shadow already; end some, or edit the policy file`);
    this.name = 'TooManyShadowsError';
  }
}

export class TooManyBansError extends Error {
  constructor(max = BANS_MAX) {
    super(`there are ${max} bans already; lift some, or wait until one ends`);
    this.name = 'TooManyBansError';
  }
}
