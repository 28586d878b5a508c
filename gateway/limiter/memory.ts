/**
 * Counters of this process: the store when no Redis is configured, and the fallback while Redis is away. The same
 * semantics as the script, answered at once: all counters of a charge are looked at first, and then all are charged, or
 * none.
 */

import type { Identity } from '#gateway/identity/digest.ts';
import { isSettledByReply } from '#gateway/policy/policy.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { BucketState } from './bucket-state.ts';
import type { Bucket, Charge } from './charge.ts';
import type { KnownCounters } from './known-counters.ts';
import { leasesOf, memberOf } from './leases.ts';
import {
  type Exhausted,
  type Limiter,
  type LimitListener,
  type Outcome,
  PROVEN_LOCALLY_MS,
  PROVEN_MS,
  type Spent,
} from './limiter.ts';
import { settlement } from './outcome.ts';

/** How this process counts while a store that it shares with others is away. */
interface LocalShare {
  /** Windows go by the store's clock; whole. */
  storeNow(): Millis;
  /** How much of a bucket this process may have in use. */
  capacityOf(bucket: Bucket): number;
  /** How much of its limit comes back here per window. */
  limitOf(bucket: Bucket): number;
  /** Charged here, and not in the store. */
  onCharged(bucket: Bucket, units: number, at: Millis): void;
}

export interface MemoryLimiterOptions {
  readonly clock: Clock;
  readonly known: KnownCounters;
  /** Unset: all of each limit is this process's. */
  readonly share?: LocalShare;
}

export class MemoryLimiter implements Limiter {
  readonly #options: MemoryLimiterOptions;

  constructor(options: MemoryLimiterOptions) {
    this.#options = options;
  }

  /** Asking costs no more than knowing. */
  knownExhausted(): readonly Exhausted[] | null {
    return null;
  }

  spend({ buckets, hasLeases }: Charge, listener: LimitListener): void {
    const { known, share } = this.#options;
    const now = this.#storeNow;
    const states: (BucketState | null)[] = [];
    let admitted = 1;
    for (const bucket of buckets) {
      const state = this.#stateOf(bucket, now);
      states.push(state);
      if (state !== null && !state.hasRoom(bucket.cost) && bucket.policy.mode === 'enforce') admitted = 0;
    }
    const leases = hasLeases ? known.leases.nextName() : null;
    if (admitted === 1)
      for (let i = 0; i < buckets.length; i++) {
        const bucket = buckets[i];
        const state = states[i] ?? null;
        // A shadow policy counts up to its limit.
        if (bucket !== undefined && state?.hasRoom(bucket.cost)) this.#charge(bucket, state, leases, now);
      }
    listener.onSpent({ buckets, admitted, states, leases, isLocal: share !== undefined }, 0);
  }

  conclude(outcomes: readonly Outcome[]): void {
    const { known } = this.#options;
    const now = this.#storeNow;
    for (const outcome of outcomes) {
      const change = settlement(outcome, now);
      if (change.amount !== 0) known.adjust(change, now, this.#limitOf(change.bucket));
    }
  }

  release(spent: Spent, position: number): void {
    const { leases } = this.#options.known;
    for (const lease of leasesOf(spent, position)) leases.give(lease);
  }

  isProven(credential: Identity): boolean {
    return this.#options.known.isProven(credential, this.#options.clock());
  }

  /** Nobody else knows more. */
  askProofs(): null {
    return null;
  }

  isProofFresh(credential: Identity): boolean {
    return this.#options.known.isProofFresh(credential, this.#options.clock());
  }

  prove(credential: Identity): void {
    const now = this.#options.clock();
    this.#options.known.prove(credential, now + PROVEN_MS, now + PROVEN_LOCALLY_MS);
  }

  withdraw(credential: Identity): void {
    this.#options.known.withdraw(credential);
  }

  async close(): Promise<void> {
    // Nothing is open.
  }

  get #storeNow(): Millis {
    const { clock, share } = this.#options;
    return share === undefined ? Math.floor(clock()) : share.storeNow();
  }

  #limitOf(bucket: Bucket): number {
    return this.#options.share?.limitOf(bucket) ?? bucket.limit;
  }

  /** null: nothing is charged, as the credential is proven. */
  #stateOf(bucket: Bucket, now: Millis): BucketState | null {
    const { clock, known, share } = this.#options;
    const { credential, policy, capacity } = bucket;
    if (credential !== null && known.isProven(credential.proof, clock())) return null;
    const limit = this.#limitOf(bucket);
    const state = known.state(bucket, now, limit);
    return new BucketState(policy, state, share?.capacityOf(bucket) ?? capacity, limit);
  }

  #charge(bucket: Bucket, state: BucketState, leases: string | null, now: Millis): void {
    const { known, share } = this.#options;
    const { cost, key, policy } = bucket;
    if (leases !== null && policy.algorithm === 'concurrency') {
      known.leases.take({ key, member: memberOf(leases, 0) }, Number.NEGATIVE_INFINITY);
      return;
    }
    known.set(bucket, state.after(cost));
    // Otherwise it is known later how much counts.
    if (!isSettledByReply(policy)) share?.onCharged(bucket, cost, now);
  }
}
