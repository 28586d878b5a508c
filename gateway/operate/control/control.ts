/**
 * What an operator does by hand: look at the counters of one identity, clear them, ban it. In the store, for all replicas
 * (store-control.ts), or in the one process that counts in memory (memory-control.ts).
 */

import type { Identity } from '#gateway/identity/digest.ts';
import type { Held } from '#gateway/limiter/level.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { Millis } from '#shared/clock.ts';
import { BANS_MAX, type Ban } from './bans.ts';
import { SHADOWS_MAX } from './shadows.ts';
import type { StoreReport } from './store-report.ts';

/** What is known of one identity at one moment. */
export interface Look {
  /** The clock by which windows go; milliseconds since the epoch. */
  readonly now: Millis;
  /** Per counter. */
  readonly held: readonly Held[];
  /** Until when the credential counts as proven; may be past. null: it is unproven, or an address. */
  readonly provenUntil: Millis | null;
}

export interface Control {
  /** Of the digests. */
  salt(): Promise<string>;
  /** @param limits of this identity, counter by counter; the policies' unless given */
  look(identity: Identity, counters: readonly Counter[], limits?: readonly number[]): Promise<Look>;
  /** Within a second every process forgets them too. @returns how many counters held something */
  reset(identity: Identity, counters: readonly Counter[]): Promise<number>;
  /** A ban that is there already is replaced. @throws TooManyBansError */
  ban(identity: Identity, forMs: Millis, reason: string): Promise<Ban>;
  /** @returns whether there was a ban */
  unban(identity: Identity): Promise<boolean>;
  banOf(identity: Identity): Promise<Ban | null>;
  /**
   * The policies of this bucket count and report, and deny nothing until then; what there is already is replaced.
   *
   * @returns when it ends
   * @throws TooManyShadowsError
   */
  shadow(bucket: string, forMs: Millis): Promise<Millis>;
  /** @returns whether it was in shadow */
  unshadow(bucket: string): Promise<boolean>;
  /** When each bucket's shadow ends. */
  shadows(): Promise<ReadonlyMap<string, Millis>>;
  /** null: there is none. @throws ControlUnavailableError */
  storeReport(): Promise<StoreReport | null>;
  close(): void;
}

/** The store cannot be asked; the message says why. */
export class ControlUnavailableError extends Error {}

/** There are as many policies in shadow as there may be. */
export class TooManyShadowsError extends Error {
  constructor() {
    super(`${SHADOWS_MAX} policies are in shadow already; end some, or edit the policy file`);
    this.name = 'TooManyShadowsError';
  }
}

/** There are as many bans as there may be. */
export class TooManyBansError extends Error {
  constructor() {
    super(`there are ${BANS_MAX} bans already; lift some, or wait until one ends`);
    this.name = 'TooManyBansError';
  }
}
