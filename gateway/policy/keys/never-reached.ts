/** Warns of a limit that cannot deny anybody: because it is too large, or because another one is reached first. */
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import type { Identifier } from '#gateway/identity/identifier.ts';
import { isConditional } from '#gateway/policy/condition.ts';
import type { LoadedPolicy } from '#gateway/policy/policy-set.ts';
import { coveredBy } from '#gateway/policy/route.ts';
import type { Warning, WholeFile } from './key.ts';

/** Maximum of requests per second. No client reaches it: no measured process served as many on one connection. */
const RATE_MAX = 100_000;

export function neverReached(policy: LoadedPolicy, { byBucket }: WholeFile): Warning | null {
  const { limit, capacity, windowSeconds, bucket } = policy;
  // Nobody has written the limit of a share.
  if (policy.shareOf !== null) return null;
  const rows = byBucket.get(bucket) ?? [];
  if (!countEach(rows)) return null;
  if (Math.min(limit, capacity) / windowSeconds > RATE_MAX) {
    return [
      `no client can make ${Math.min(limit, capacity)} requests in ${windowSeconds} s, so this limit never denies`,
      'make it smaller, or remove the policy',
    ];
  }
  for (const [other, wide] of byBucket) {
    const [first] = wide;
    if (other === bucket || first === undefined || !countEach(wide)) continue;
    if (!deniesFirst(first, policy)) continue;
    // If two policies are equal, warn about the later one only.
    if (deniesFirst(policy, first) && covers(rows, wide) && first.index > policy.index) continue;
    if (!covers(wide, rows)) continue;
    return [
      `never reached: ${first.name} in line ${first.line} counts the same requests and allows at most ${mostIn(first, policy)} in ${windowSeconds} s`,
      'make the limit smaller than that, or remove the policy',
    ];
  }
  return null;
}

/** Whether the policies are comparable: each request counts, and costs 1. Of different values, not each one counts. */
export function countEach(rows: readonly LoadedPolicy[]): boolean {
  return rows.every(
    ({ algorithm, cost, count, distinct }) =>
      !ALGORITHMS[algorithm].isHeld &&
      distinct === null &&
      count === 'request' &&
      cost.kind === 'units' &&
      cost.units === 1,
  );
}

function covers(wide: readonly LoadedPolicy[], rows: readonly LoadedPolicy[]): boolean {
  const routes = wide.map(({ route }) => route);
  return rows.every(({ route }) => coveredBy(route, routes).length > 0);
}

/** Whether `wide` denies a client before `policy` could. */
function deniesFirst(wide: LoadedPolicy, policy: LoadedPolicy): boolean {
  if (isConditional(wide) || wide.unless !== null || wide.onlyFor !== null) return false;
  if (wide.rollout !== null || wide.overrides !== null || policy.overrides !== null) return false;
  // A sliding window or a token bucket can span two windows of `wide`.
  if (policy.algorithm !== 'fixed-window') return false;
  // A window of `policy` may contain a midnight.
  if (wide.algorithm === 'calendar-window') return false;
  if (wide.mode !== 'enforce' || !countsNoLess(wide.identifier, policy.identifier)) return false;
  // While the store is unavailable, `policy` may deny what `wide` allows.
  if (wide.onStoreFailure === 'allow' && policy.onStoreFailure !== 'allow') return false;
  return mostIn(wide, policy) <= policy.limit;
}

/**
 * Returns how many requests `wide` allows at most during one window of `policy`. Windows begin at multiples of their
 * length.
 */
export function mostIn(wide: LoadedPolicy, { windowSeconds }: LoadedPolicy): number {
  if (ALGORITHMS[wide.algorithm].isBacklog)
    return wide.capacity + Math.ceil((wide.limit * windowSeconds) / wide.windowSeconds);
  if (wide.windowSeconds % windowSeconds === 0) return wide.limit;
  const windows = windowSeconds / wide.windowSeconds;
  return wide.limit * (Number.isInteger(windows) ? windows : Math.ceil(windows) + 1);
}

/** Whether each client of `narrow` is a single client, or part of one, for `wide`. */
function countsNoLess(wide: Identifier, narrow: Identifier): boolean {
  if (wide.name === narrow.name) return true;
  if (wide.kind === 'everyone') return true;
  if (narrow.kind === 'first') return narrow.parts.every((part) => countsNoLess(wide, part));
  if (narrow.kind === 'combined') return narrow.parts.some((part) => countsNoLess(wide, part));
  if (wide.kind !== 'address' || narrow.kind !== 'address') return false;
  const isWiderIpv4 = (wide.ipv4Prefix ?? 32) <= (narrow.ipv4Prefix ?? 32);
  return isWiderIpv4 && wide.ipv6Prefix <= narrow.ipv6Prefix;
}
