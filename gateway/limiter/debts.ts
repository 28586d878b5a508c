/** All that this process admitted while counting alone, of every kind of counter, and how the store gets to hear of it. */

import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import type { Part } from './charge.ts';
import type { Answer, PendingCheck } from './check.ts';
import type { GivenBack } from './general-check.ts';
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
    if (part.policy.algorithm !== 'fixed-window') this.#levels.add(part, part.cost, chargedAt);
    else this.#windows.add(part, windowEnd(part, chargedAt, storeAheadMs), part.cost);
  }

  /**
   * Settles requests that were decided alone and that the store, as it now turns out, has counted as well.
   *
   * @param letThrough how many of those who asked were admitted alone
   * @returns what the store has charged beyond that
   */
  paid(
    answers: readonly Answer[],
    letThrough: (check: PendingCheck) => number,
    storeAheadMs: Millis,
  ): GivenBack[] {
    const beyond: GivenBack[] = [];
    for (const { check, spent, now } of answers) {
      for (const [i, part] of spent.parts.entries()) {
        const { policy, cost, capacity } = part;
        const used = spent.used[i] ?? -1;
        if (used < 0 || policy.count !== 'request' || policy.algorithm === 'concurrency') continue;
        // A shadow policy counts up to its limit.
        const times = Math.max(0, Math.min(spent.admitted, Math.floor((capacity - used) / cost)));
        const units = isCountedAlone(policy)
          ? this.#paid(part, times * cost, now, storeAheadMs)
          : Math.max(0, times - letThrough(check)) * cost;
        if (units > 0) beyond.push({ part, units, chargedAt: spent.chargedAt?.[i] ?? now });
      }
    }
    return beyond;
  }

  #paid(part: Part, units: number, now: Millis, storeAheadMs: Millis): number {
    if (part.policy.algorithm !== 'fixed-window') return this.#levels.paid(part, units, now);
    return this.#windows.paid(part, windowEnd(part, now, storeAheadMs), units);
  }

  /**
   * Charges them to the store.
   *
   * @param now on this process's clock; `storeNow` on the store's
   * @throws when the store does not take them
   */
  async settle(store: RedisStore, now: () => Millis, storeNow: () => Millis): Promise<void> {
    if (this.#settling) return;
    this.#settling = true;
    try {
      while (!this.isEmpty) {
        const windows = this.#windows.take(KEYS_PER_SCRIPT_MAX, now());
        const levels = this.#levels.take(KEYS_PER_SCRIPT_MAX, storeNow());
        try {
          if (windows.length > 0) await store.settle(windows);
          if (levels.length > 0) await store.settleLevels(levels);
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

/** Whether a process counts for this policy while its store is away. */
export function isCountedAlone({ mode, onStoreFailure }: Policy): boolean {
  return mode === 'enforce' && onStoreFailure === 'local';
}

/** On this process's clock. @param moment on the store's */
function windowEnd({ policy: { windowMs } }: Part, moment: Millis, storeAheadMs: Millis): Millis {
  return (Math.floor(moment / windowMs) + 1) * windowMs - storeAheadMs;
}
