/** Writes calls of the script, and parses its replies. Pure: no clock, no connection. */

import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { scriptWindow } from '#gateway/algorithms/windows.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { StoreFault } from '#gateway/store/fault.ts';
import type { Millis } from '#shared/clock.ts';
import { BucketState } from './bucket-state.ts';
import { type Bucket, type Charge, proofKey } from './charge.ts';
import type { LimitListener, Spent } from './limiter.ts';

/** A charge, and all requests that wait for it. */
export interface PendingCheck {
  readonly charge: Charge;
  readonly listeners: LimitListener[];
  /** Name of the leases that it takes; null if it takes none. */
  readonly leases: string | null;
}

/** The store's answer to a check. */
export interface Answer {
  readonly check: PendingCheck;
  readonly spent: Spent;
  /** Credentials that the store knows to be proven. */
  readonly proven: readonly Identity[];
}

/** A change of one counter: an earlier charge, or a charge that is taken back. */
export interface Adjustment {
  readonly bucket: Bucket;
  /** Change of `CounterState.a`. Negative to take a charge back. */
  readonly amount: number;
  /** Time on the store's clock. */
  readonly chargedAt: Millis;
}

/** Adjustments of one call of the store. */
export interface AdjustmentCall {
  readonly some: readonly Adjustment[];
  readonly made: Promise<unknown>;
}

/** Returns the adjustment that takes back a number of units. */
export function refund(bucket: Bucket, units: number, chargedAt: Millis): Adjustment {
  return { bucket, amount: -bucket.amountOf(units), chargedAt };
}

/** KEYS and ARGV of the script. */
interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly [string];
}

/** Returns how many keys of the store a check has. */
export function keysOf({ charge: { buckets } }: PendingCheck): number {
  let keys = 0;
  for (const { unlessProven, value } of buckets) keys += (value === null ? 1 : 2) + unlessProven.length;
  return keys;
}

/** Numbers the rules in the order of their first use in a call. */
class Rules {
  readonly #usual = new Map<Policy, number>();
  readonly #overridden = new Map<string, number>();
  readonly rows: (number | readonly number[])[] = [];
  readonly #storeNow: Millis;

  constructor(storeNow: Millis) {
    this.#storeNow = storeNow;
  }

  of(bucket: Bucket): number {
    const { policy, limit } = bucket;
    if (limit !== policy.limit)
      return this.#numberOf(this.#overridden, rowOf(bucket, this.#storeNow).join(), bucket);
    return this.#numberOf(this.#usual, policy, bucket);
  }

  #numberOf<K>(numbers: Map<K, number>, key: K, bucket: Bucket): number {
    let number = numbers.get(key);
    if (number === undefined) {
      number = this.rows.push(...rowOf(bucket, this.#storeNow)) / 4;
      numbers.set(key, number);
    }
    return number;
  }
}

function rowOf({ policy, limit, capacity }: Bucket, storeNow: Millis): Rules['rows'] {
  const { algorithm, mode, windowMs, calendar } = policy;
  const window = calendar === null ? windowMs : scriptWindow(calendar, storeNow);
  return [ALGORITHMS[algorithm].id, limit, mode === 'enforce' ? capacity : -capacity, window];
}

/** @param storeNow an estimate of the store's clock */
export function scriptCall(
  storeNow: Millis,
  checks: readonly PendingCheck[],
  adjustments: readonly Adjustment[] = [],
): ScriptCall {
  const rules = new Rules(storeNow);
  const keys: string[] = [];
  const adjusted: number[] = [];
  const charges: number[] = [];
  let leases: string[] = [];
  for (const { bucket, amount, chargedAt } of adjustments) {
    keys.push(bucket.key);
    if (bucket.valueKey === null) adjusted.push(rules.of(bucket), amount, chargedAt);
    else {
      keys.push(bucket.valueKey);
      adjusted.push(-rules.of(bucket), Math.sign(amount), chargedAt);
    }
  }
  for (const [place, { charge, listeners, leases: name }] of checks.entries()) {
    charges.push(listeners.length, charge.buckets.length);
    for (const bucket of charge.buckets) {
      const { key, valueKey, unlessProven, cost } = bucket;
      for (const one of unlessProven) keys.push(proofKey(one));
      keys.push(key);
      if (valueKey !== null) keys.push(valueKey);
      charges.push(
        unlessProven.length === 0 ? rules.of(bucket) : -rules.of(bucket),
        valueKey === null ? cost : 0,
      );
      if (unlessProven.length > 0) charges.push(unlessProven.length);
    }
    if (name === null) continue;
    if (leases.length === 0) leases = new Array(checks.length).fill('');
    leases[place] = name;
  }
  const lengths = [rules.rows.length, adjusted.length, charges.length];
  return { keys, args: [JSON.stringify([...lengths, ...rules.rows, ...adjusted, ...charges, ...leases])] };
}

/** Returns the fault of a reply that does not have the format of our script. */
export function unreadable(cause?: unknown): StoreFault {
  return new StoreFault('error', 'the store sent a reply that cannot be read', cause);
}

const NONE: readonly Identity[] = [];

/**
 * @returns the decision of each check
 * @throws StoreFault if the reply does not fit the call
 */
export function readReply(reply: unknown, checks: readonly PendingCheck[]): readonly Answer[] {
  const numbers = parse(reply);
  let at = 0;
  const next = (): number => {
    const value = numbers[at++];
    if (typeof value !== 'number') throw unreadable();
    return value;
  };
  const now = next() * 1000 + Math.floor(next() / 1000);
  return checks.map((check): Answer => {
    const { buckets } = check.charge;
    const said = next();
    const admitted = said < 0 ? check.listeners.length : said;
    let proven = NONE;
    const states = buckets.map((bucket) => {
      const { policy, unlessProven, capacity, limit, value } = bucket;
      const state = { at: now, a: next(), b: next() };
      const what = value === null ? 'request' : next() === 1 ? 'used-value' : 'new-value';
      if (state.a >= 0) return new BucketState(policy, state, capacity, limit, what);
      const credential = unlessProven[state.b];
      if (credential === undefined) throw unreadable();
      proven = [...proven, credential];
      return null;
    });
    const spent = { buckets, admitted, states, leases: check.leases, isLocal: false };
    return { check, spent, proven };
  });
}

function parse(reply: unknown): readonly unknown[] {
  try {
    const list: unknown = JSON.parse(String(reply));
    if (Array.isArray(list)) return list;
  } catch (cause) {
    throw unreadable(cause);
  }
  throw unreadable();
}
