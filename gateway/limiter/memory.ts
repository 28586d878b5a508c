/**
 * Counters of this process: the store if no Redis is configured, and the fallback during an outage of Redis. It has the
 * same semantics as the script, without waiting: it reads all counters of a charge first, and then charges all, or
 * none.
 */

import type { Identity } from '#gateway/identity/digest.ts';
import { DAY_MS, type VisitRule } from '#gateway/policy/groups.ts';
import { isSettledByReply } from '#gateway/policy/policy.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { BucketState } from './bucket-state.ts';
import type { Bucket, Charge } from './charge.ts';
import { dayOf, regularUntil, visitedOn } from './history.ts';
import type { KnownCounters } from './known-counters.ts';
import { leasesOf, memberOf } from './leases.ts';
import {
  type Limiter,
  type LimitListener,
  type Outcome,
  PROVEN_LOCALLY_MS,
  PROVEN_MS,
  type Spent,
  shareOf,
  type Violation,
} from './limiter.ts';
import { NewClients, type VisitsLog } from './new-clients.ts';
import { settlement } from './outcome.ts';
import type { Replicas } from './replicas.ts';

/** How this process counts during an outage of a store that it shares with others. */
interface LocalShare {
  /** Current time on the store's clock, a whole number. */
  storeNow(): Millis;
  readonly replicas: Pick<Replicas, 'count' | 'rank'>;
  /** Called for a charge that the store does not know. */
  onCharged(bucket: Bucket, units: number, at: Millis): void;
}

const ALONE = { count: 1, rank: 0 };

export interface MemoryLimiterOptions {
  readonly clock: Clock;
  readonly known: KnownCounters;
  /** The share of this process. Without it, all of each limit belongs to this process. */
  readonly share?: LocalShare;
  /** It gets a line when no more new clients are stored on a day. */
  readonly log?: VisitsLog;
}

export class MemoryLimiter implements Limiter {
  readonly #options: MemoryLimiterOptions;
  readonly #newClients: NewClients;

  constructor(options: MemoryLimiterOptions) {
    this.#options = options;
    this.#newClients = new NewClients(options.log ?? null);
  }

  /** Returns null, because a charge in memory costs no more than this check. */
  knownExhausted(): readonly Violation[] | null {
    return null;
  }

  surelyDenies({ buckets }: Charge): boolean {
    const now = this.#storeNow;
    return buckets.some((bucket) => {
      const state = bucket.policy.mode === 'enforce' ? this.#stateOf(bucket, now) : null;
      return state?.hasRoom(bucket.cost) === false;
    });
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
        // A policy that never denies counts up to its limit.
        if (bucket !== undefined && state?.hasRoom(bucket.cost)) this.#charge(bucket, state, leases, now);
      }
    listener.onSpent({ buckets, admitted, states, leases, isLocal: share !== undefined }, 0);
  }

  conclude(outcomes: readonly Outcome[]): void {
    const { known } = this.#options;
    const now = this.#storeNow;
    for (const outcome of outcomes) {
      const change = settlement(outcome, now);
      if (change.amount !== 0) known.adjust(change, now, change.bucket.limit / this.#replicas.count);
    }
  }

  release(spent: Spent, position: number): void {
    const { leases } = this.#options.known;
    for (const lease of leasesOf(spent, position)) leases.give(lease);
  }

  isProven(credential: Identity): boolean {
    return this.#options.known.proofs.isProven(credential, this.#options.clock());
  }

  /** Returns null, because there is no store that could know more proofs. */
  askProofs(): null {
    return null;
  }

  isProofFresh(credential: Identity): boolean {
    return this.#options.known.proofs.isFresh(credential, this.#options.clock());
  }

  prove(credential: Identity): void {
    const now = this.#options.clock();
    this.#options.known.proofs.prove(credential, now + PROVEN_MS, now + PROVEN_LOCALLY_MS);
  }

  withdraw(credential: Identity): void {
    this.#options.known.proofs.withdraw(credential);
  }

  visited(client: Identity, rule: VisitRule, network: () => Identity | null): void {
    const { known, clock } = this.#options;
    const day = dayOf(clock());
    const before = known.histories.of(client);
    if (before?.last === day) return;
    if (before === null && !this.#newClients.admit(network(), rule.newPerDay, day)) return;
    const history = visitedOn(day, before);
    known.histories.note(client, history);
    const until = regularUntil(history, rule);
    if (until !== null) known.proofs.prove(client, until * DAY_MS);
    // The rule may have asked for fewer days before.
    else if (before !== null) known.proofs.withdraw(client);
  }

  async close(): Promise<void> {
    // There is no connection to close.
  }

  get #storeNow(): Millis {
    const { clock, share } = this.#options;
    return share === undefined ? Math.floor(clock()) : share.storeNow();
  }

  get #replicas(): LocalShare['replicas'] {
    return this.#options.share?.replicas ?? ALONE;
  }

  /** Returns the state of a bucket. null if nothing is charged, because the credential is proven. */
  #stateOf(bucket: Bucket, now: Millis): BucketState | null {
    const { clock, known } = this.#options;
    const { unlessProven, policy, capacity } = bucket;
    if (unlessProven.some((one) => known.proofs.isProven(one, clock()))) return null;
    const { count, rank } = this.#replicas;
    const limit = bucket.limit / count;
    const state = known.state(bucket, now, limit);
    const most = shareOf(policy, rank, count, capacity);
    return new BucketState(policy, state, most, limit, known.whatOf(bucket, now));
  }

  #charge(bucket: Bucket, state: BucketState, leases: string | null, now: Millis): void {
    const { known, share } = this.#options;
    const { cost, key, algorithm, policy } = bucket;
    if (leases !== null && algorithm.isHeld) {
      known.leases.take({ key, member: memberOf(leases, 0) }, Number.NEGATIVE_INFINITY);
      return;
    }
    if (state.unitsOf(1, cost) === 0) return;
    known.set(bucket, state.after(cost));
    known.use(bucket, now);
    // A charge that the reply settles is reported later, when its units are known.
    if (!isSettledByReply(policy)) share?.onCharged(bucket, cost, now);
  }
}
