/** The state of a bucket when a charge was decided: how much was in use, and when there is room again. */

import { type Algorithm, type CounterState, type Rule, ruleOf } from '#gateway/algorithms/algorithm.ts';
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';

/** A bucket counts requests, by their cost, or values. A value that was used before in the window takes nothing. */
export type What = 'request' | 'new-value' | 'used-value';

export class BucketState {
  /** The state before any request of the batch was charged. */
  readonly state: CounterState;
  /** The maximum number of units in use. */
  readonly capacity: number;
  /** Units in use, rounded up. */
  readonly used: number;
  readonly what: What;
  readonly #algorithm: Algorithm;
  readonly #rule: Rule;

  /**
   * @param capacity of the policy, of an override, or this process's share of it
   * @param limit the same, per window
   */
  constructor(policy: Policy, state: CounterState, capacity: number, limit: number, what: What = 'request') {
    this.#algorithm = ALGORITHMS[policy.algorithm];
    this.#rule = ruleOf(policy, limit);
    this.state = state;
    this.capacity = capacity;
    this.what = what;
    this.used = this.#algorithm.used(state, policy.windowMs);
  }

  /** Units that a number of requests of this cost take together, if they are admitted. */
  unitsOf(requests: number, cost: number): number {
    if (this.what === 'request') return requests * cost;
    return this.what === 'used-value' || requests === 0 ? 0 : 1;
  }

  /** Units left after a number of requests of this cost. Negative if there is no room for the last of them. */
  leftAfter(requests: number, cost: number): number {
    const units = this.unitsOf(requests, cost);
    const left = this.capacity - this.used - units;
    // A value that was used before passes, although the limit was lowered since.
    return units === 0 ? Math.max(0, left) : left;
  }

  hasRoom(cost: number): boolean {
    return this.roomFor(cost) > 0;
  }

  /** The number of requests of this cost for which there is room. */
  roomFor(cost: number): number {
    if (this.what === 'used-value') return Number.POSITIVE_INFINITY;
    const room = Math.max(0, Math.floor((this.capacity - this.used) / cost));
    return this.what === 'request' || room === 0 ? room : Number.POSITIVE_INFINITY;
  }

  /** Returns the contents of the counter after charging more units. */
  after(units: number): CounterState {
    if (units === 0) return this.state;
    const { at, a, b } = this.state;
    return { at, a: a + units * this.#algorithm.amountPerUnit(this.#rule.windowMs), b };
  }

  /** Time until all of it is available again, after charging more units. */
  resetMs(units: number): Millis {
    return this.#algorithm.resetMs(this.after(units), this.#rule);
  }

  /**
   * Time until there is room for `cost`, after charging more units; 0 if there is room now, Infinity if there never is.
   */
  retryMs(units: number, cost: number): Millis {
    if (cost > this.capacity) return Number.POSITIVE_INFINITY;
    if (this.used + units + cost <= this.capacity) return 0;
    return this.#algorithm.retryMs(this.after(units), this.capacity - cost, this.#rule);
  }
}
