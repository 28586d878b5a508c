/**
 * This process decides alone while the store is away, and notes what it owes the store for it.
 *
 * Each policy's `onStoreFailure` decides: `deny` refuses with 503, `allow` does not count, `local` counts in this process,
 * from the last known state of a counter and against its share of the limit. The shares of all known replicas add up to
 * the limit. What is admitted so is owed: `commit` charges the store for it before the store decides again, so that an
 * outage does not make a window admit more. A check that was given up is owed too, although the store may have executed
 * it: to charge twice is safe, to give back twice is not.
 */
import { EMPTY, ruleOf } from '#gateway/algorithms/algorithm.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { KEYS_PER_SCRIPT_MAX } from '#gateway/store/connection.ts';
import type { Millis } from '#shared/clock.ts';
import { Charge } from './charge.ts';
import type { Adjustment } from './check.ts';
import type { LimitListener, Outcome } from './limiter.ts';
import { MemoryLimiter } from './memory.ts';
import type { Replicas } from './replicas.ts';
import type { SharedStore } from './shared-store.ts';

/** Maximum number of entries of about 200 bytes. Beyond it the oldest are dropped. */
const ENTRIES_MAX = 20_000;

interface LocalDecisionsOptions extends Omit<SharedStore, 'connection'> {
  readonly replicas: Replicas;
  /** Charges the store. @returns the adjustments of each call, and its end */
  readonly commit: (
    owed: readonly Adjustment[],
  ) => readonly { readonly some: readonly Adjustment[]; readonly made: Promise<unknown> }[];
}

export class LocalDecisions {
  readonly #options: LocalDecisionsOptions;
  readonly #memory: MemoryLimiter;
  /** One entry for each counter and window, and for each of different values. */
  readonly #owed = new Map<string, Adjustment>();
  /** Number of requests that were decided here. */
  count = 0;

  constructor(options: LocalDecisionsOptions) {
    this.#options = options;
    const { clock, known, replicas, storeClock } = options;
    this.#memory = new MemoryLimiter({
      clock,
      known,
      share: {
        storeNow: storeClock.now,
        replicas,
        onCharged: (bucket, units, chargedAt) =>
          this.owe({ bucket, amount: bucket.amountOf(units), chargedAt }),
      },
    });
  }

  /** Whether the store has been charged for all that was admitted here. */
  get isSettled(): boolean {
    return this.#owed.size === 0;
  }

  spend(charge: Charge, listener: LimitListener): void {
    this.count++;
    const { buckets } = charge;
    if (buckets.some(({ policy }) => policy.mode === 'enforce' && policy.onStoreFailure === 'deny')) {
      listener.onStoreUnavailable();
      return;
    }
    const local = buckets.filter(({ policy }) => isCountedHere(policy));
    this.#memory.spend(local.length === buckets.length ? charge : new Charge(local), listener);
  }

  /** Changes what this process knows of the counters. */
  conclude(outcomes: readonly Outcome[]): void {
    this.#memory.conclude(outcomes);
  }

  /** Notes a change that the store has not made. */
  owe({ bucket, amount, chargedAt }: Adjustment): void {
    const { key, algorithm, policy, value } = bucket;
    const id = `${key} ${algorithm.windowAt(chargedAt, policy)} ${value}`;
    const entry = this.#owed.get(id);
    const sum = amount + (entry?.amount ?? 0);
    // The earlier time counts, because more of a token bucket has drained since then.
    const since = Math.min(chargedAt, entry?.chargedAt ?? chargedAt);
    if (sum === 0) this.#owed.delete(id);
    else this.#owed.set(id, { bucket, amount: sum, chargedAt: since });
    if (this.#owed.size > ENTRIES_MAX) this.#owed.delete(this.#owed.keys().next().value ?? '');
  }

  /** Corrects the times of everything. @param byMs difference of the store's clock from the one used so far */
  moveTimes(byMs: Millis): void {
    this.#options.known.moveTimes(byMs);
    const all = [...this.#owed.values()];
    this.#owed.clear();
    for (const entry of all) this.owe({ ...entry, chargedAt: entry.chargedAt + byMs });
  }

  /** Charges the store for all that is owed. @throws if the store fails again; what it may not have heard stays owed */
  async commit(): Promise<void> {
    while (!this.isSettled) {
      const calls = this.#options.commit(this.#take()).map(({ some, made }) =>
        made.catch((error: unknown) => {
          for (const one of some) if (one.amount > 0) this.owe(one);
          throw error;
        }),
      );
      // Wait for all calls, even if one fails, because each keeps its own changes if it fails.
      await Promise.allSettled(calls);
      await Promise.all(calls);
    }
  }

  /**
   * Takes out some entries that still matter. A token bucket has at most the usage that it still holds: its contents
   * from before the outage drained first, in the store and here.
   */
  #take(): Adjustment[] {
    const { known, replicas, storeClock } = this.#options;
    const now = storeClock.now();
    const taken: Adjustment[] = [];
    for (const [id, { bucket, amount, chargedAt }] of this.#owed) {
      if (taken.length >= KEYS_PER_SCRIPT_MAX) break;
      this.#owed.delete(id);
      const { algorithm, policy, limit } = bucket;
      const left = algorithm.isBacklog
        ? Math.min(amount, known.state(bucket, now, limit / replicas.count).a)
        : amount;
      const rule = ruleOf(policy, limit);
      const { a, b } = algorithm.adjust({ ...EMPTY, at: now }, Math.abs(left), chargedAt, rule);
      if (a + b > 0) taken.push({ bucket, amount: left, chargedAt });
    }
    return taken;
  }
}

/** Whether a process counts for this policy during an outage of its store. */
function isCountedHere({ mode, onStoreFailure }: Policy): boolean {
  return mode !== 'shadow' && onStoreFailure === 'local';
}
