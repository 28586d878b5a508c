/** Warnings that compare policies: whether another policy surely limits the same requests. */
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { type Identifier, partsOf, type SimpleIdentifier } from '#gateway/identity/identifier.ts';
import { areImpliedBy } from '#gateway/policy/condition.ts';
import type { LoadedPolicy } from '#gateway/policy/policy-set.ts';
import { coveredBy } from '#gateway/policy/route.ts';
import type { Warning, WholeFile } from './key.ts';

/** Whether some of the others surely count each request of a policy, whoever sends it, and deny. */
export function areCounted(policy: LoadedPolicy, others: readonly LoadedPolicy[]): boolean {
  const sure = others.filter(
    (other) =>
      other.mode === 'enforce' &&
      other.unless === null &&
      other.onlyFor === null &&
      other.rollout === null &&
      areImpliedBy(other, policy),
  );
  return (
    coveredBy(
      policy.route,
      sure.map(({ route }) => route),
    ).length > 0
  );
}

/** Maximum of requests per second. No client reaches it: no measured process served as many on one connection. */
const RATE_MAX = 100_000;

/** Warns of a limit that cannot deny anybody: because it is too large, or because another one is reached first. */
export function neverReached(policy: LoadedPolicy, { byBucket }: WholeFile): Warning | null {
  const { limit, capacity, windowSeconds, bucket } = policy;
  const rows = byBucket.get(bucket) ?? [];
  // Nobody has written the limit of a share.
  if (policy.shareOf !== null || !countEach(rows)) return null;
  if (Math.min(limit, capacity) / windowSeconds > RATE_MAX)
    return [
      `no client can make ${Math.min(limit, capacity)} requests in ${windowSeconds} s, so this limit never denies`,
      'make it smaller, or remove the policy',
    ];
  for (const [other, wide] of byBucket) {
    const [first] = wide;
    if (other === bucket || first === undefined || !denyFirst(wide, rows, policy)) continue;
    // If two policies are equal, warn about the later one only.
    if (first.index > policy.index && denyFirst(rows, wide, first)) continue;
    return [
      `never reached: ${first.name} in line ${first.line} counts the same requests and allows at most ${mostIn(first, policy)} in ${windowSeconds} s`,
      'make the limit smaller than that, or remove the policy',
    ];
  }
  return null;
}

/** Whether the policies are comparable: each request counts, and costs 1. Of different values, not each one counts. */
function countEach(rows: readonly LoadedPolicy[]): boolean {
  return rows.every(
    ({ algorithm, cost, count, distinct }) =>
      !ALGORITHMS[algorithm].isHeld &&
      distinct === null &&
      count === 'request' &&
      cost.kind === 'units' &&
      cost.units === 1,
  );
}

/** Whether the policies of one bucket deny a client before `policy`, one of `rows` with a common bucket, could. */
function denyFirst(
  wide: readonly LoadedPolicy[],
  rows: readonly LoadedPolicy[],
  policy: LoadedPolicy,
): boolean {
  const [first] = wide;
  if (first === undefined || first.overrides !== null || policy.overrides !== null) return false;
  // A sliding window or a token bucket can span two windows of `wide`, and a window of `policy` a midnight.
  if (policy.algorithm !== 'fixed-window' || first.algorithm === 'calendar-window') return false;
  // While the store is unavailable, `policy` may deny what `wide` allows.
  if (first.onStoreFailure === 'allow' && policy.onStoreFailure !== 'allow') return false;
  if (!countsNoLess(first.identifier, policy.identifier) || mostIn(first, policy) > policy.limit)
    return false;
  return countEach(wide) && rows.every((row) => areCounted(row, wide));
}

/**
 * Returns how many requests `wide` allows at most during one window of `policy`. Windows begin at multiples of their
 * length.
 */
function mostIn(wide: LoadedPolicy, { windowSeconds }: LoadedPolicy): number {
  if (ALGORITHMS[wide.algorithm].isBacklog)
    return wide.capacity + Math.ceil((wide.limit * windowSeconds) / wide.windowSeconds);
  if (wide.windowSeconds % windowSeconds === 0) return wide.limit;
  const windows = windowSeconds / wide.windowSeconds;
  return wide.limit * (Number.isInteger(windows) ? windows : Math.ceil(windows) + 1);
}

/** Whether each client of `narrow` is a single client, or part of one, for `wide`. */
function countsNoLess(wide: Identifier, narrow: Identifier): boolean {
  if (wide.name === narrow.name || wide.kind === 'everyone') return true;
  if (narrow.kind === 'first') return narrow.parts.every((part) => countsNoLess(wide, part));
  if (narrow.kind === 'combined') return narrow.parts.some((part) => countsNoLess(wide, part));
  if (wide.kind !== 'address' || narrow.kind !== 'address') return false;
  const isWiderIpv4 = (wide.ipv4Prefix ?? 32) <= (narrow.ipv4Prefix ?? 32);
  return isWiderIpv4 && wide.ipv6Prefix <= narrow.ipv6Prefix;
}

/** One client should get at most one in so many of what all share. */
const ONE_IN = 10;
/** Parameters of a path that only one client knows, such as `/hooks/{token}`. */
const SECRET = /(token|secret|key)$/i;

/** Warns of a limit that many clients share, and that a single one of them could use up. */
export function easilyUsedUp(
  policy: LoadedPolicy,
  { policies }: Pick<WholeFile, 'policies'>,
): Warning | null {
  if (!isShared(policy) || policy.mode !== 'enforce' || !countEach([policy])) return null;
  const own = policies.filter(
    (other) => countEach([other]) && countsAddresses(other, policy) && areCounted(policy, [other]),
  );
  const least = Math.min(...own.map((other) => mostIn(other, policy)));
  if (least <= policy.limit / ONE_IN) return null;
  const fix = 'add a policy by address that allows each client at most a tenth of it';
  return own.length === 0
    ? [`one client can use up ${policy.name}, because no policy limits single clients on this route`, fix]
    : [
        `one client can use ${Math.min(least, policy.limit)} of the ${policy.limit} requests that all clients of ${policy.name} share`,
        fix,
      ];
}

/**
 * Limits of groups have shares, and robots may use up a limit that counts them together. No policy can allow a
 * tenth of fewer than ten requests.
 */
function isShared({ identifier, onlyFor, userAgent, limit }: LoadedPolicy): boolean {
  return (
    onlyFor === null && userAgent === null && limit >= ONE_IN && partsOf(identifier).every(hasManyClients)
  );
}

function hasManyClients(part: SimpleIdentifier): boolean {
  if (part.kind === 'path') return !SECRET.test(part.param);
  return part.kind === 'everyone' || part.kind === 'host' || part.kind === 'network';
}

/** Whether an address has one counter for all that the shared limit counts together. */
function countsAddresses({ identifier }: LoadedPolicy, shared: LoadedPolicy): boolean {
  if (identifier.kind === 'first') return identifier.address !== null;
  const parts = partsOf(identifier);
  const others = parts.filter(({ kind }) => kind !== 'address');
  const together = partsOf(shared.identifier);
  return others.length < parts.length && others.every((part) => together.includes(part));
}
