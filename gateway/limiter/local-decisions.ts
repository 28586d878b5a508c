/**
 * Decisions without an unavailable store, by each policy's `onStoreFailure`. `deny` refuses with 503, `allow` does not
 * count, `local` counts in this process, starting from the last known state of a counter, against its share of the
 * limit. The shares of all known replicas add up to the limit. These admissions are uncommitted until the store has
 * been charged for them.
 */
import { isSettledByReply } from '#gateway/policy/policy.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { type Bucket, Charge } from './charge.ts';
import type { Adjustment, Answer, PendingCheck } from './check.ts';
import type { KnownCounters } from './known-counters.ts';
import { type LimitListener, type Outcome, shareOf } from './limiter.ts';
import { MemoryLimiter } from './memory.ts';
import { settlement } from './outcome.ts';
import type { RedisStore } from './redis.ts';
import type { Replicas } from './replicas.ts';
import type { StoreClock } from './store-clock.ts';
import { isCountedLocally, Uncommitted } from './uncommitted.ts';

interface LocalDecisionsOptions {
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly known: KnownCounters;
  readonly replicas: Replicas;
  readonly store: RedisStore;
}

export class LocalDecisions {
  readonly #options: LocalDecisionsOptions;
  readonly #memory: MemoryLimiter;
  readonly #uncommitted: Uncommitted;
  /** Number of locally admitted requests for each check that was given up and may still be answered. */
  readonly #letThrough = new WeakMap<PendingCheck, number>();
  #count = 0;

  constructor(options: LocalDecisionsOptions) {
    this.#options = options;
    const { clock, known, replicas, store } = options;
    const { now: storeNow } = options.storeClock;
    const limitOf = ({ limit }: Bucket): number => limit / replicas.count;
    this.#uncommitted = new Uncommitted({
      now: storeNow,
      backlogOf: (bucket) => known.state(bucket, storeNow(), limitOf(bucket)).a,
      commit: (adjustments) => store.commit(adjustments),
    });
    this.#memory = new MemoryLimiter({
      clock,
      known,
      share: {
        storeNow,
        limitOf,
        capacityOf: ({ policy, capacity }) => shareOf(policy, replicas.rank, replicas.count, capacity),
        onCharged: (bucket, units, at) => this.#uncommitted.add(bucket, units, at),
      },
    });
  }

  /** Number of requests that were decided locally. */
  get count(): number {
    return this.#count;
  }

  /** Whether the store has been charged for all local admissions. */
  get isCommitted(): boolean {
    return this.#uncommitted.isEmpty;
  }

  spend(charge: Charge, listener: LimitListener): void {
    this.#count++;
    let isLocalOnly = true;
    for (const { policy } of charge.buckets) {
      if (policy.mode === 'enforce' && policy.onStoreFailure === 'deny') {
        listener.onStoreUnavailable();
        return;
      }
      isLocalOnly &&= isCountedLocally(policy);
    }
    const local = isLocalOnly
      ? charge
      : new Charge(charge.buckets.filter(({ policy }) => isCountedLocally(policy)));
    this.#memory.spend(local, listener);
  }

  /** Decides checks that the store did not answer in time. */
  spendFailed(checks: readonly PendingCheck[]): void {
    for (const check of checks) {
      let letThrough = 0;
      for (const listener of check.listeners) {
        this.spend(check.charge, {
          onSpent(spent, position) {
            letThrough += spent.admitted;
            listener.onSpent(spent, position);
          },
          onStoreUnavailable: () => listener.onStoreUnavailable(),
        });
      }
      this.#letThrough.set(check, letThrough);
    }
  }

  /** Handles late answers of the store: gives back what it charged beyond the local admissions. */
  confirm(answers: readonly Answer[]): void {
    const { store, known, storeClock } = this.#options;
    const letThrough = (check: PendingCheck): number => this.#letThrough.get(check) ?? 0;
    for (const adjustment of this.#uncommitted.confirm(answers, letThrough)) {
      store.adjust(adjustment);
      // For other buckets the last state from the store is the best estimate.
      if (!isSettledByReply(adjustment.bucket.policy)) known.adjust(adjustment, storeClock.now());
    }
    for (const { spent } of answers) store.leases.endAll(spent);
  }

  /** @param isLocal the request was decided here, so the store has not been charged */
  conclude(outcomes: readonly Outcome[], isLocal: boolean, isStoreAway: boolean): void {
    this.#memory.conclude(outcomes);
    const { store, storeClock } = this.#options;
    for (const outcome of outcomes) {
      const { bucket, chargedAt, units } = outcome;
      const change = settlement(outcome, storeClock.now());
      if (isLocal) {
        this.#uncommitted.add(bucket, Math.min(units, bucket.cost), chargedAt);
        if (change.amount > 0) this.#uncommitted.put(change);
      } else if (isStoreAway) this.#uncommitted.put(change);
      else if (change.amount !== 0) store.adjust(change);
    }
  }

  /** Keeps changes that did not reach the store. */
  keep(unmade: readonly Adjustment[]): void {
    for (const adjustment of unmade) this.#uncommitted.put(adjustment);
  }

  /** Corrects times. @param aheadMs difference of the store's clock from the one used so far */
  moveTimes(aheadMs: Millis): void {
    this.#options.known.moveTimes(aheadMs);
    this.#uncommitted.moveTimes(aheadMs);
  }

  /** Charges the store for local admissions. @throws if the store fails again */
  commit(): Promise<void> {
    return this.#uncommitted.commit();
  }
}
