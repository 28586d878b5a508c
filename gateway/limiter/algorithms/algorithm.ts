/**
 * The interface of an algorithm: once in TypeScript for the memory of this process, once in Lua for the store's script. Both
 * work in whole numbers and get the same results; test/gateway/limiter/algorithms.test.ts checks it case by case.
 */
import type { Calendar } from '#gateway/policy/calendar.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';

/** Contents of a counter. The algorithm says what the two numbers mean. */
export interface CounterState {
  /** When it held this, on the store's clock, whole. */
  readonly at: Millis;
  readonly a: number;
  readonly b: number;
}

export const EMPTY: CounterState = { at: 0, a: 0, b: 0 };

export interface Rule {
  readonly windowMs: Millis;
  /** Requests per window. It may be a fraction: this process's share of a limit. */
  readonly limit: number;
  /** null unless the windows are those of a calendar. */
  readonly calendar: Calendar | null;
}

type Windows = Pick<Rule, 'windowMs' | 'calendar'>;

/** @param limit of the client, or this process's share */
export function ruleOf({ windowMs, calendar }: Pick<Policy, keyof Windows>, limit: number): Rule {
  return { windowMs, limit, calendar };
}

export interface Algorithm {
  /** Number by which the script knows it. */
  readonly id: number;
  /** How much one unit adds to a state. */
  amountPerUnit(windowMs: Millis): number;
  /** Number of the window that contains a moment; 0 where there are no windows. */
  windowAt(at: Millis, windows: Windows): number;
  /** The state at a later moment. */
  advance(state: CounterState, now: Millis, rule: Rule): CounterState;
  /** Units in use, rounded up. The state is that of `now`. */
  used(state: CounterState, windowMs: Millis): number;
  /** Until nothing is in use any more. */
  resetMs(state: CounterState, rule: Rule): Millis;
  /** Until no more than `room` units are in use; asked only if more are. */
  retryMs(state: CounterState, room: number, rule: Rule): Millis;
  /**
   * Adds a charge that was made elsewhere before, or takes a charge back, as far as it still matters.
   *
   * @param amount negative: it is taken back
   * @param chargedAt when it was charged, on the store's clock
   */
  adjust(state: CounterState, amount: number, chargedAt: Millis, rule: Rule): CounterState;
  readonly lua: AlgorithmLua;
}

/**
 * The same as function bodies in Lua. `now` is the store's time in ms, `at` the place of the counter among `keys`, and
 * `get(at)` its text, or '' if there is none. `put(at, text, ttl)` replaces it; `fresh` has what was written otherwise.
 * `window` is its length in ms, and for calendar windows what `scriptWindow` returns.
 */
export interface AlgorithmLua {
  /** `at`, `window`, `limit` -> a, b: the counter's contents at `now`. Contents that it cannot read are none. */
  readonly read: string;
  /** `window`, `a`, `b` -> units in use */
  readonly used: string;
  /** `at`, `window`, `limit`, `a`, `b`, `added`: keeps a and b; `added` of a is new. `lease` names those who are added. */
  readonly write: string;
  /** `window`, `limit`, `a`, `b`, `amount`, `moment` -> a, b */
  readonly adjust: string;
}

/** The most that a counter holds: Redis and this process keep counts in 32 bits. */
export const COUNT_MAX = 2 ** 32 - 1;
/** Half of Number.MAX_SAFE_INTEGER: units times milliseconds stay below it. */
export const PRODUCT_MAX = 2 ** 52;

/** Milliseconds until the window that contains `now` ends. Windows are aligned to the epoch. */
export function untilWindowEnd(now: Millis, windowMs: Millis): Millis {
  return windowMs - (now % windowMs);
}
