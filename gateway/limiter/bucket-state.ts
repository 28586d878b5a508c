/** The state of a bucket when a charge was decided: how much was used, and when there is room again. */
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import { type Algorithm, type CounterState, type Rule, ruleOf } from './algorithms/algorithm.ts';
import { ALGORITHMS } from './algorithms/table.ts';

export class BucketState {
  /** Before any request that asked was charged. */
  readonly state: CounterState;
  /** The most that may be used. */
  readonly capacity: number;
  /** Units in use, rounded up. */
  readonly used: number;
  readonly #algorithm: Algorithm;
  readonly #rule: Rule;

  /**
   * @param capacity the policy's, an override's, or this process's share of it
   * @param limit the same, per window
   */
  constructor(policy: Policy, state: CounterState, capacity: number, limit: number) {
    this.#algorithm = ALGORITHMS[policy.algorithm];
    this.#rule = ruleOf(policy, limit);
    this.state = state;
    this.capacity = capacity;
    this.used = this.#algorithm.used(state, policy.windowMs);
  }

  hasRoom(cost: number): boolean {
    return this.used + cost <= this.capacity;
  }

  /** The number of requests of this cost for which there is room. */
  roomFor(cost: number): number {
    return Math.max(0, Math.floor((this.capacity - this.used) / cost));
  }

  /** The contents of the counter once so many more units are charged. */
  after(units: number): CounterState {
    if (units === 0) return this.state;
    const { at, a, b } = this.state;
    return { at, a: a + units * this.#algorithm.amountPerUnit(this.#rule.windowMs), b };
  }

  /** Until all of it is available again, once so many more units are charged. */
  resetMs(units: number): Millis {
    return this.#algorithm.resetMs(this.after(units), this.#rule);
  }

  /** Until `cost` finds room, once so many more units are charged; 0: at once, Infinity: never. */
  retryMs(units: number, cost: number): Millis {
    if (cost > this.capacity) return Number.POSITIVE_INFINITY;
    if (this.used + units + cost <= this.capacity) return 0;
    return this.#algorithm.retryMs(this.after(units), this.capacity - cost, this.#rule);
  }
}
