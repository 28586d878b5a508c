/**
 * Uncommitted usage: admissions and settlements of this process during an outage, which the store does not know. They
 * are charged, or given back, before the store decides again, so that an outage does not make a window admit more.
 */

import { EMPTY, ruleOf } from '#gateway/algorithms/algorithm.ts';
import { isSettledByReply, type Policy } from '#gateway/policy/policy.ts';
import { KEYS_PER_SCRIPT_MAX } from '#gateway/store/connection.ts';
import type { Millis } from '#shared/clock.ts';
import type { Bucket } from './charge.ts';
import { type Adjustment, type Answer, type PendingCheck, refund } from './check.ts';
import type { AdjustmentCall } from './store-calls.ts';

/** Maximum number of entries of about 200 bytes. Beyond it the oldest are dropped. */
const ENTRIES_MAX = 20_000;

interface UncommittedOptions {
  /** Reads the store's clock. */
  readonly now: () => Millis;
  /** Returns the known backlog of a token bucket. */
  readonly backlogOf: (bucket: Bucket) => number;
  /** Charges the store. */
  readonly commit: (adjustments: readonly Adjustment[]) => readonly AdjustmentCall[];
}

export class Uncommitted {
  readonly #options: UncommittedOptions;
  /** One entry for each counter and window, and for each of different values. */
  readonly #entries = new Map<string, Adjustment>();
  #isCommitting = false;

  constructor(options: UncommittedOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** @param chargedAt on the store's clock */
  add(bucket: Bucket, units: number, chargedAt: Millis): void {
    this.put({ bucket, amount: bucket.amountOf(units), chargedAt });
  }

  /** Keeps a change that the store could not make. */
  put({ bucket, amount, chargedAt }: Adjustment): void {
    const id = idOf(bucket, chargedAt);
    const entry = this.#entries.get(id);
    const sum = amount + (entry?.amount ?? 0);
    if (sum === 0) {
      this.#entries.delete(id);
      return;
    }
    if (entry === undefined && this.#entries.size >= ENTRIES_MAX) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    // Use the earlier time, because more of a token bucket has drained since then.
    const since = Math.min(chargedAt, entry?.chargedAt ?? chargedAt);
    this.#entries.set(id, { bucket, amount: sum, chargedAt: since });
  }

  /**
   * Handles late answers, which show that the store has charged requests that were decided here.
   *
   * @param letThrough number of requests that were admitted here
   * @returns what the store has charged beyond that
   */
  confirm(answers: readonly Answer[], letThrough: (check: PendingCheck) => number): Adjustment[] {
    const beyond: Adjustment[] = [];
    for (const { check, spent } of answers) {
      for (const [i, bucket] of spent.buckets.entries()) {
        const state = spent.states[i] ?? null;
        const { algorithm, policy, cost } = bucket;
        if (state === null || algorithm.isHeld) continue;
        const { at } = state.state;
        const times = Math.min(spent.admitted, state.roomFor(cost));
        // If the reply settles the cost, it is known later. Otherwise the decision charged nothing.
        if (isSettledByReply(policy)) {
          if (policy.mode !== 'shadow' && times > 0) beyond.push(refund(bucket, times * cost, at));
        } else if (isCountedLocally(policy)) {
          const left = this.#takeOff(bucket, bucket.amountOf(state.unitsOf(times, cost)), at);
          if (left > 0) beyond.push({ bucket, amount: -left, chargedAt: at });
        } else if (times > letThrough(check))
          beyond.push(refund(bucket, (times - letThrough(check)) * cost, at));
      }
    }
    return beyond;
  }

  /** Corrects the times of all charges. */
  moveTimes(byMs: Millis): void {
    const all = [...this.#entries.values()];
    this.#entries.clear();
    for (const entry of all) this.put({ ...entry, chargedAt: entry.chargedAt + byMs });
  }

  /** Charges all of it to the store. @throws if the store fails */
  async commit(): Promise<void> {
    if (this.#isCommitting) return;
    this.#isCommitting = true;
    try {
      while (!this.isEmpty) {
        const calls = this.#options.commit(this.#take()).map(async ({ some, made }) => {
          try {
            await made;
          } catch (error) {
            // The store may have made the changes. Charging twice is safe, giving back twice is not.
            for (const one of some) if (one.amount > 0) this.put(one);
            throw error;
          }
        });
        // Wait for all calls, even if one fails, because each keeps its own changes if it fails.
        await Promise.allSettled(calls);
        await Promise.all(calls);
      }
    } finally {
      this.#isCommitting = false;
    }
  }

  /**
   * Takes out some entries that still matter. A token bucket has at most the usage that it still holds: its contents
   * from before the outage drained first, in the store and here.
   */
  #take(): Adjustment[] {
    const { now, backlogOf } = this.#options;
    const taken: Adjustment[] = [];
    for (const [id, { bucket, amount, chargedAt }] of this.#entries) {
      if (taken.length >= KEYS_PER_SCRIPT_MAX) break;
      this.#entries.delete(id);
      const { algorithm, policy, limit } = bucket;
      const left = algorithm.isBacklog ? Math.min(amount, backlogOf(bucket)) : amount;
      const rule = ruleOf(policy, limit);
      const { a, b } = algorithm.adjust({ ...EMPTY, at: now() }, Math.abs(left), chargedAt, rule);
      if (a + b > 0) taken.push({ bucket, amount: left, chargedAt });
    }
    return taken;
  }

  /** @returns the part of it that was not uncommitted */
  #takeOff(bucket: Bucket, amount: number, chargedAt: Millis): number {
    const id = idOf(bucket, chargedAt);
    const entry = this.#entries.get(id);
    if (entry === undefined) return amount;
    if (entry.amount > amount) this.#entries.set(id, { ...entry, amount: entry.amount - amount });
    else this.#entries.delete(id);
    return Math.max(0, amount - entry.amount);
  }
}

/** Whether a process counts for this policy during an outage of its store. */
export function isCountedLocally({ mode, onStoreFailure }: Policy): boolean {
  return mode !== 'shadow' && onStoreFailure === 'local';
}

function idOf({ key, algorithm, policy, value }: Bucket, chargedAt: Millis): string {
  return `${key} ${algorithm.windowAt(chargedAt, policy)} ${value}`;
}
