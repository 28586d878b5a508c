/**
 * The interface of an algorithm. Each has a TypeScript implementation for the memory of this process, and a Lua one for
 * the store's script. Both work in whole numbers and get the same results; test/gateway/algorithms/case-by-case.test.ts
 * checks this case by case.
 */

import type { Millis, Seconds } from '#shared/clock.ts';
import type { Calendar } from './calendar.ts';

/** Name in the policy file. A calendar window has the length `day`, `week` or `month`. */
export type AlgorithmName =
  | 'fixed-window'
  | 'sliding-window'
  | 'token-bucket'
  | 'concurrency'
  | 'calendar-window';

/** Contents of a counter. The algorithm defines the meaning of the two numbers. */
export interface CounterState {
  /** Time of this state on the store's clock, a whole number. */
  readonly at: Millis;
  readonly a: number;
  readonly b: number;
}

export const EMPTY: CounterState = { at: 0, a: 0, b: 0 };

export interface Rule {
  readonly windowMs: Millis;
  /** Units per window. A fraction if it is this process's share of a limit. */
  readonly limit: number;
  /** The calendar of the windows; null for windows of a fixed length. */
  readonly calendar: Calendar | null;
}

type Windows = Pick<Rule, 'windowMs' | 'calendar'>;

/** @param limit the client's limit, or this process's share of it */
export function ruleOf({ windowMs, calendar }: Windows, limit: number): Rule {
  return { windowMs, limit, calendar };
}

/** The parts of the description of what a policy allows. */
export interface Allowance {
  /** The limit with its unit. */
  readonly limit: string;
  /** The window with its unit. */
  readonly window: string;
  /** How much can be used at once, if it is not the limit; else null. */
  readonly capacity: number | null;
  /** Time zone of a calendar; null without one. */
  readonly timezone: string | null;
}

export interface Algorithm {
  /** Number of the algorithm in the script. */
  readonly id: number;
  /** The end of the names of its counters. Counters of different algorithms have different contents. */
  readonly keySuffix: string;
  /** Whether it counts what requests hold until they end. Otherwise time gives back what was used. */
  readonly isHeld: boolean;
  /**
   * Whether the state is a backlog `a` that drains by the limit. Then another limit applies at once, `a` may need more
   * than 32 bits, and `b` is 0.
   */
  readonly isBacklog: boolean;
  /** Describes a policy, such as `100 in 60 seconds`. */
  allowance(allowed: Allowance): string;
  /** Formats the window for operators: `60 s`, `a calendar month` or `at once`. */
  span(windowSeconds: Seconds): string;
  /** Time after which all of the capacity is available again; null if that depends on the end of requests. */
  quotaSeconds(windowSeconds: Seconds, capacity: number, limit: number): Seconds | null;
  /** How much one unit adds to a state. */
  amountPerUnit(windowMs: Millis): number;
  /** Number of the window that contains a time; 0 for algorithms without windows. */
  windowAt(at: Millis, windows: Windows): number;
  /** Returns the state at a later time. */
  advance(state: CounterState, now: Millis, rule: Rule): CounterState;
  /** The largest limit that it can count in such a window. */
  limitMax(windowMs: Millis): number;
  /** Units in use, rounded up. `state` must be that of the current time. */
  used(state: CounterState, windowMs: Millis): number;
  /** Time until no units are in use. */
  resetMs(state: CounterState, rule: Rule): Millis;
  /** Time until at most `room` units are in use. Call it only if more are. */
  retryMs(state: CounterState, room: number, rule: Rule): Millis;
  /**
   * Adds an earlier charge, or takes one back, as far as it still matters.
   *
   * @param amount negative to take it back
   * @param chargedAt time of the charge on the store's clock
   */
  adjust(state: CounterState, amount: number, chargedAt: Millis, rule: Rule): CounterState;
  readonly lua: AlgorithmLua;
}

/**
 * The same as function bodies in Lua. `now` is the store's time in ms, `at` the index of the counter in `keys`, and
 * `get(at)` its text, or '' if it is missing. `put(at, text, ttl)` replaces the text; `fresh` holds values written
 * otherwise. `window` is its length in ms, and for calendar windows the result of `scriptWindow`; `left(window)` is the
 * time until the window of `now` ends.
 */
export interface AlgorithmLua {
  /** `at`, `window`, `limit` -> a, b: the counter's contents at `now`. Unreadable contents count as none. */
  readonly read: string;
  /** `window`, `a`, `b` -> the units in use, rounded up */
  readonly used: string;
  /** `window` -> what a unit adds to a */
  readonly unit: string;
  /**
   * `at`, `window`, `limit`, `a`, `b`, `added`: stores a and b; `added` of a is new. `lease` names the added requests.
   */
  readonly write: string;
  /** `window`, `limit`, `a`, `b`, `amount`, `moment` -> a, b */
  readonly adjust: string;
}

/** Units times milliseconds must stay a safe integer. */
export function countableIn(windowMs: Millis): number {
  return Math.floor(PRODUCT_MAX / Math.max(1, windowMs));
}

/** The maximum of a counter, because Redis and this process store counts in 32 bits. */
export const COUNT_MAX = 2 ** 32 - 1;
/** Half of Number.MAX_SAFE_INTEGER. Units times milliseconds stay below it. */
export const PRODUCT_MAX = 2 ** 52;

/** Milliseconds until the window that contains `now` ends. Windows are aligned to the epoch. */
export function untilWindowEnd(now: Millis, windowMs: Millis): Millis {
  return windowMs - (now % windowMs);
}
