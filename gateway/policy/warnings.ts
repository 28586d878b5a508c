/** Warns of valid settings that are probably mistakes, such as policies that can never deny. Pure. */

import { HeaderFilter } from '#gateway/http/header-filter.ts';
import { carriersOf } from '#gateway/identity/credential.ts';
import { type Identifier, partsOf, readsBody } from '#gateway/identity/identifier.ts';
import type { LoadedPolicy, PolicySet } from './policy-set.ts';
import { inOrder, type Path, type Problem, type Report } from './problems.ts';
import { coveredBy, type Route } from './route.ts';

/** Maximum of requests per second. No client reaches it: no measured process served as many on one connection. */
const RATE_MAX = 100_000;
/** Methods that get 405 before policies are matched. */
const NEVER_SERVED: ReadonlySet<string> = new Set(['CONNECT', 'TRACE']);

export function warningsOf(
  set: PolicySet,
  placeOf: (path: Path, point: 'value' | 'key') => { readonly line: number; readonly column: number },
): Problem[] {
  const warnings: Problem[] = [];
  const warn: Report = (path, message, fix, point = 'value') =>
    void warnings.push({ ...placeOf(path, point), message, fix });
  const buckets = bucketsOf(set);
  for (const identifier of set.identifiers) warnOfIdentifier(identifier, set, warn);
  for (const policy of set.policies) {
    const here = policy.at;
    const row = here.slice(0, 2);
    warnOfBucket(policy, buckets, (message, fix) => warn([...row, 'bucket'], message, fix));
    warnOfRoute(policy.route, (message, fix) => warn([...row, 'route'], message, fix));
    warnOfInvented(policy, set, (message, fix) => warn([...row, 'identifier'], message, fix));
    const isFirstOfRow = (here[3] ?? 0) === 0;
    if (isFirstOfRow && policy.priority !== null && set.protect === null)
      warn(
        [...row, 'priority'],
        'priority has no effect without protect',
        'write protect: on, or remove it',
        'key',
      );
    warnOfLimit(policy, buckets, (message, fix) => warn([...here, 'limit'], message, fix));
  }
  return inOrder(warnings);
}

type Say = (message: string, fix: string) => void;
type Buckets = ReadonlyMap<string, readonly LoadedPolicy[]>;

function bucketsOf({ policies }: PolicySet): Buckets {
  return Map.groupBy(policies, ({ bucket }) => bucket);
}

function warnOfIdentifier(identifier: Identifier, { policies }: PolicySet, warn: Report): void {
  const { name } = identifier;
  if (identifier.kind === 'combined') return;
  if (!policies.some((policy) => partsOf(policy.identifier).some((part) => part.name === name))) {
    warn(['identifiers', name], `no policy uses the identifier ${name}`, 'use it, or remove it', 'key');
    return;
  }
  const filter = new HeaderFilter();
  const useless = carriersOf(identifier).filter(
    // The filter stops Host only because the gateway writes the field itself, with the same value.
    (source) => source.kind === 'header' && source.header !== 'host' && filter.stops(source.header, true),
  );
  for (const source of useless) {
    if (source.kind !== 'header') continue;
    warn(
      ['identifiers', name],
      `the gateway removes the header ${source.header} of ${name}, so the application never sees this credential`,
      'use another header, or let it pass with GATEWAY_PASS_HEADERS',
      'key',
    );
  }
}

function warnOfBucket({ name, bucket }: LoadedPolicy, buckets: Buckets, say: Say): void {
  if (bucket === name || (buckets.get(bucket)?.length ?? 0) > 1) return;
  say(
    `nothing shares the bucket ${bucket} with ${name}`,
    'give other policies the same bucket, or remove it',
  );
}

function warnOfRoute({ methods, text }: Route, say: Say): void {
  if (methods === null || ![...methods].every((method) => NEVER_SERVED.has(method))) return;
  say(
    `${text} matches no request: the gateway answers CONNECT and TRACE with 405`,
    'name another method, or remove the policy',
  );
}

/**
 * Warns of a field that clients can invent. Each value has its own counter, so another policy must bound how many
 * values one client sends.
 */
function warnOfInvented({ name, identifier, route }: LoadedPolicy, { policies }: PolicySet, say: Say): void {
  if (!readsBody(identifier)) return;
  const counts = (other: LoadedPolicy): boolean =>
    other.identifier.kind === 'address' &&
    other.mode === 'enforce' &&
    coveredBy(route, [other.route]).length > 0;
  if (policies.some(counts)) return;
  say(
    `${name} counts a field that clients can invent, and no policy counts their addresses on this route`,
    'add a policy by address, or one client can try any number of values',
  );
}

function warnOfLimit(policy: LoadedPolicy, buckets: Buckets, say: Say): void {
  const { limit, capacity, windowSeconds, bucket } = policy;
  const rows = buckets.get(bucket) ?? [];
  if (!countEach(rows)) return;
  if (Math.min(limit, capacity) / windowSeconds > RATE_MAX) {
    say(
      `no client can make ${Math.min(limit, capacity)} requests in ${windowSeconds} s, so this limit never denies`,
      'make it smaller, or remove the policy',
    );
    return;
  }
  for (const [other, wide] of buckets) {
    const [first] = wide;
    if (other === bucket || first === undefined || !countEach(wide)) continue;
    if (!deniesFirst(first, policy)) continue;
    // If two policies are equal, warn about the later one only.
    if (deniesFirst(policy, first) && covers(rows, wide) && first.index > policy.index) continue;
    if (!covers(wide, rows)) continue;
    say(
      `never reached: ${first.name} in line ${first.line} counts the same requests and allows at most ${mostIn(first, policy)} in ${windowSeconds} s`,
      `make the limit smaller than that, or remove the policy`,
    );
    return;
  }
}

/** Whether the policies are comparable: each request counts, and costs 1. */
function countEach(rows: readonly LoadedPolicy[]): boolean {
  return rows.every(
    ({ algorithm, cost, count }) =>
      algorithm !== 'concurrency' && count === 'request' && cost.kind === 'units' && cost.units === 1,
  );
}

function covers(wide: readonly LoadedPolicy[], rows: readonly LoadedPolicy[]): boolean {
  const routes = wide.map(({ route }) => route);
  return rows.every(({ route }) => coveredBy(route, routes).length > 0);
}

/** Whether `wide` denies a client before `policy` could. */
function deniesFirst(wide: LoadedPolicy, policy: LoadedPolicy): boolean {
  if (wide.rollout !== null || wide.overrides !== null || policy.overrides !== null) return false;
  // A sliding window or a token bucket can span two windows of `wide`.
  if (policy.algorithm !== 'fixed-window') return false;
  // A window of `policy` may contain a midnight.
  if (wide.algorithm === 'calendar-window') return false;
  if (wide.mode === 'shadow' || !countsNoLess(wide.identifier, policy.identifier)) return false;
  // While the store is unavailable, `policy` may deny what `wide` allows.
  if (wide.onStoreFailure === 'allow' && policy.onStoreFailure !== 'allow') return false;
  return mostIn(wide, policy) <= policy.limit;
}

/**
 * Returns how many requests `wide` allows at most during one window of `policy`. Windows begin at multiples of their
 * length.
 */
function mostIn(wide: LoadedPolicy, { windowSeconds }: LoadedPolicy): number {
  if (wide.algorithm === 'token-bucket')
    return wide.capacity + Math.ceil((wide.limit * windowSeconds) / wide.windowSeconds);
  if (wide.windowSeconds % windowSeconds === 0) return wide.limit;
  const windows = windowSeconds / wide.windowSeconds;
  return wide.limit * (Number.isInteger(windows) ? windows : Math.ceil(windows) + 1);
}

/** Whether each client of `narrow` is a single client, or part of one, for `wide`. */
function countsNoLess(wide: Identifier, narrow: Identifier): boolean {
  if (wide.name === narrow.name) return true;
  if (wide.kind === 'everyone') return true;
  if (narrow.kind === 'combined') return narrow.parts.some((part) => countsNoLess(wide, part));
  return wide.kind === 'address' && narrow.kind === 'address' && wide.ipv6Prefix <= narrow.ipv6Prefix;
}
