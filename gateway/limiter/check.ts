/** Writes calls of the script, and parses its replies. Pure: no clock, no connection. */

import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { scriptWindow } from '#gateway/algorithms/windows.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import { StoreFault } from '#gateway/store/fault.ts';
import type { Millis } from '#shared/clock.ts';
import { BucketState } from './bucket-state.ts';
import { type Bucket, proofKey } from './charge.ts';
import type { PendingCheck, Spent } from './limiter.ts';

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

/** Returns the adjustment that takes back a number of units. */
export function refund(bucket: Bucket, units: number, chargedAt: Millis): Adjustment {
  return { bucket, amount: -bucket.amountOf(units), chargedAt };
}

/** Returns how many keys of the store a check has. */
export function keysOf({ charge: { buckets } }: PendingCheck): number {
  let keys = 0;
  for (const { unlessProven, value } of buckets) keys += (value === null ? 1 : 2) + unlessProven.length;
  return keys;
}

/** Numbers of a call. The windows of a calendar are a list. */
type Numbers = (number | readonly number[])[];

function addRule(numbers: Numbers, { policy, limit, capacity }: Bucket, storeNow: Millis): void {
  const { algorithm, mode, windowMs, calendar } = policy;
  numbers.push(
    ALGORITHMS[algorithm].id,
    limit,
    mode === 'enforce' ? capacity : -capacity,
    calendar === null ? windowMs : scriptWindow(calendar, storeNow),
  );
}

/** @param storeNow an estimate of the store's clock @returns KEYS and ARGV of the script */
export function scriptCall(
  storeNow: Millis,
  checks: readonly PendingCheck[],
  adjustments: readonly Adjustment[] = [],
) {
  const keys: string[] = [];
  const adjusted: Numbers = [];
  const charges: Numbers = [];
  for (const { bucket, amount, chargedAt } of adjustments) {
    const { key, valueKey } = bucket;
    keys.push(key);
    if (valueKey !== null) keys.push(valueKey);
    addRule(adjusted, bucket, storeNow);
    adjusted.push(amount, chargedAt, valueKey === null ? 0 : 1);
  }
  for (const { charge, listeners } of checks) {
    charges.push(listeners.length, charge.buckets.length);
    for (const bucket of charge.buckets) {
      const { key, valueKey, unlessProven, cost } = bucket;
      for (const one of unlessProven) keys.push(proofKey(one));
      keys.push(key);
      if (valueKey !== null) keys.push(valueKey);
      addRule(charges, bucket, storeNow);
      charges.push(valueKey === null ? cost : 0, unlessProven.length);
    }
  }
  const hasLeases = checks.some(({ leases }) => leases !== null);
  const leases = hasLeases ? checks.map(({ leases }) => leases ?? '') : [];
  return {
    keys,
    args: [JSON.stringify([adjusted.length, charges.length, ...adjusted, ...charges, ...leases])] as const,
  };
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
