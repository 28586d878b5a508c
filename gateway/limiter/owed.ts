/**
 * What this process admitted while counting alone, and the store has not heard of. It is charged there before the store
 * decides again, so that an outage does not make a window generous. Bounded: beyond that the counters that were used
 * least recently are forgotten by the store's next window anyway.
 */

import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import type { Part } from './charge.ts';

/** About 200 bytes each. */
const ENTRIES_MAX = 20_000;

interface Entry {
  readonly policy: Policy;
  readonly windowEndsAt: Millis;
  times: number;
}

/** One counter and what has to be added to it. */
export interface Debt {
  readonly key: string;
  readonly windowEndsAt: Millis;
  readonly policy: Policy;
  readonly times: number;
}

export class Owed {
  readonly #entries = new Map<string, Entry>();

  get size(): number {
    return this.#entries.size;
  }

  add(part: Part, windowEndsAt: Millis, units: number): void {
    const { key, policy } = part;
    const entry = this.#entries.get(key);
    if (entry !== undefined && isSameWindow(entry, windowEndsAt)) {
      entry.times += units;
      return;
    }
    if (entry === undefined && this.#entries.size >= ENTRIES_MAX) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    this.#entries.set(key, { policy, windowEndsAt, times: units });
  }

  /** The store has charged so many units after all: its answer was late. @returns how many of them nobody owed */
  paid({ key }: Part, windowEndsAt: Millis, units: number): number {
    const entry = this.#entries.get(key);
    if (entry === undefined || !isSameWindow(entry, windowEndsAt)) return units;
    const left = units - entry.times;
    entry.times -= units;
    if (entry.times <= 0) this.#entries.delete(key);
    return Math.max(0, left);
  }

  /** Takes out up to so many whose windows still run; those that have ended are dropped. */
  take(max: number, now: Millis): Debt[] {
    const debts: Debt[] = [];
    for (const [key, { policy, windowEndsAt, times }] of this.#entries) {
      if (debts.length >= max) break;
      this.#entries.delete(key);
      if (windowEndsAt > now) debts.push({ key, windowEndsAt, policy, times });
    }
    return debts;
  }

  /** Puts back what could not be charged. */
  putBack(debts: readonly Debt[]): void {
    for (const { key, windowEndsAt, policy, times } of debts) {
      const entry = this.#entries.get(key);
      if (entry !== undefined) entry.times += times;
      else if (this.#entries.size < ENTRIES_MAX) this.#entries.set(key, { policy, windowEndsAt, times });
    }
  }
}

/** Windows are computed from two clocks: a millisecond apart is the same one. */
function isSameWindow({ policy, windowEndsAt }: Entry, otherEndsAt: Millis): boolean {
  return Math.abs(windowEndsAt - otherEndsAt) < policy.windowMs / 2;
}
