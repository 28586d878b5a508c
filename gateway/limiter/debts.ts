/** All that this process admitted while counting alone, of every kind of counter, and how the store gets to hear of it. */
import type { Millis } from '#shared/clock.ts';
import type { Part } from './charge.ts';
import type { Answer } from './check.ts';
import { Owed } from './owed.ts';
import { OwedLevels } from './owed-levels.ts';
import { KEYS_PER_SCRIPT_MAX, type RedisStore } from './redis.ts';

export class Debts {
  readonly #windows = new Owed();
  readonly #levels: OwedLevels;
  #settling = false;

  /** @param backlogOf what this process takes a token bucket to hold */
  constructor(backlogOf: (part: Part) => number) {
    this.#levels = new OwedLevels(backlogOf);
  }

  get isEmpty(): boolean {
    return this.#windows.size + this.#levels.size === 0;
  }

  /** Of a fixed window. */
  add(part: Part, windowEndsAt: Millis, units: number): void {
    this.#windows.add(part, windowEndsAt, units);
  }

  /** Of other counters. @param now on the store's clock */
  addLevel(part: Part, units: number, now: Millis): void {
    this.#levels.add(part, units, now);
  }

  /** Of a request that is known to count by now. @param chargedAt on the store's clock, so much ahead of ours */
  addCounted(part: Part, chargedAt: Millis, storeAheadMs: Millis): void {
    const { algorithm, windowMs } = part.policy;
    if (algorithm !== 'fixed-window') this.#levels.add(part, part.cost, chargedAt);
    else this.#windows.add(part, (Math.floor(chargedAt / windowMs) + 1) * windowMs - storeAheadMs, part.cost);
  }

  /** What was decided alone is in the store already, as far as it was admitted there. */
  paid(answers: readonly Answer[]): void {
    for (const { spent, now } of answers) {
      for (const [i, part] of spent.parts.entries()) {
        if ((spent.used[i] ?? -1) < 0 || part.policy.count !== 'request') continue;
        if (part.policy.algorithm === 'concurrency') continue;
        const units = spent.admitted * part.cost;
        if (part.policy.algorithm === 'fixed-window') this.#windows.paid(part, units);
        else this.#levels.paid(part, units, now);
      }
    }
  }

  /**
   * Charges them to the store.
   *
   * @param now on this process's clock; `storeNow` on the store's
   * @throws when the store does not take them
   */
  async settle(
    store: RedisStore,
    budgetMs: Millis,
    now: () => Millis,
    storeNow: () => Millis,
  ): Promise<void> {
    if (this.#settling) return;
    this.#settling = true;
    try {
      while (!this.isEmpty) {
        const windows = this.#windows.take(KEYS_PER_SCRIPT_MAX, now());
        const levels = this.#levels.take(KEYS_PER_SCRIPT_MAX, storeNow());
        try {
          if (windows.length > 0) await store.settle(windows, budgetMs);
          if (levels.length > 0) await store.settleLevels(levels, budgetMs);
        } catch (error) {
          this.#windows.putBack(windows);
          this.#levels.putBack(levels);
          throw error;
        }
      }
    } finally {
      this.#settling = false;
    }
  }
}
