/** Builds policies, charges and answers for tests of limiters. */

import type { Calendar } from '#gateway/algorithms/calendar.ts';
import { type Identity, identityOf } from '#gateway/identity/digest.ts';
import { Bucket, Charge } from '#gateway/limiter/charge.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Limiter, Spent } from '#gateway/limiter/limiter.ts';
import { MemoryLimiter, type MemoryLimiterOptions } from '#gateway/limiter/memory.ts';
import type { Overrides } from '#gateway/policy/clients.ts';
import { ClientTable } from '#gateway/policy/clients.ts';
import { Counter } from '#gateway/policy/counter.ts';
import type { Policy } from '#gateway/policy/policy.ts';

/** The policy counts different values. */
export const VALUES = {
  distinct: { name: 'body.email', kind: 'body', field: 'email', isRequired: false },
} as const;

export function policy(
  name: string,
  limit: number,
  windowSeconds: number,
  more: Partial<Policy> = {},
): Policy {
  return {
    name,
    index: 0,
    line: 1,
    unless: null,
    distinct: null,
    onlyFor: null,
    shareOf: null,
    identifier: { name: 'ip', kind: 'address', ipv6Prefix: 64 },
    limit,
    overrides: null,
    rollout: null,
    algorithm: 'fixed-window',
    burst: null,
    capacity: limit,
    cost: { kind: 'units', units: 1 },
    count: 'request',
    windowMs: windowSeconds * 1000,
    windowSeconds,
    calendar: more.algorithm === 'calendar-window' ? evenCalendar(windowSeconds) : null,
    bucket: name,
    bucketId: 0,
    mode: 'enforce',
    onStoreFailure: 'local',
    headers: true,
    retryJitter: 0,
    ban: null,
    ...more,
  };
}

/** A calendar whose windows are equal to those of a fixed window, so both must admit the same. */
function evenCalendar(windowSeconds: number): Calendar {
  const windowMs = windowSeconds * 1000;
  return {
    unit: 'day',
    timezone: 'UTC',
    windowAt(at) {
      const number = Math.floor(at / windowMs);
      // Numbers of real calendars are below 2^20.
      return { number: number % 2 ** 20, start: number * windowMs, end: (number + 1) * windowMs };
    },
  };
}

/** Builds overrides for one plan. */
export function overridesFor(plan: string, limit: number): Overrides {
  const clients = new ClientTable<number>();
  clients.add({ kind: 'plan', name: plan }, limit);
  return {
    clients,
    least: limit,
    most: limit,
    version: `${plan} ${limit}`,
  };
}

/** Returns an identity for any name. The same name gives the same identity. */
export function identity(name = 'somebody'): Identity {
  return identityOf(Buffer.from(name.padEnd(16, '.')).toString('base64url').slice(-22).padStart(22, 'A'));
}

/** Builds a policy's bucket for one identity. */
export function part(of: Policy, who = 'somebody', cost = 1): Bucket {
  return new Bucket(new Counter(of, false), identity(who), [], cost);
}

/** Builds the same bucket for a request with a value, whose different values the policy counts. */
export function withValue({ counter, identity: who, unlessProven, limit }: Bucket, value: string): Bucket {
  return new Bucket(counter, who, unlessProven, 1, limit, identity(value).digest);
}

export function chargeOf(...parts: readonly Bucket[]): Charge {
  return new Charge(parts);
}

/** Builds the same for an identity with a limit of its own. */
export function partWithLimit(of: Policy, limit: number, who = 'somebody', cost = 1): Bucket {
  return new Bucket(new Counter(of, false), identity(who), [], cost, limit);
}

/** Builds the buckets of an unproven credential: its own, and that of its address. */
export function unproven(
  of: Policy,
  credential: string,
  address: string,
  cost = 1,
  limit = of.limit,
): readonly [Bucket, Bucket] {
  return unprovenCombined(of, credential, credential, address, cost, limit);
}

/** Builds the same for a combined identity with a credential that must be proven. */
export function unprovenCombined(
  of: Policy,
  combined: string,
  credential: string,
  address: string,
  cost = 1,
  limit = of.limit,
): readonly [Bucket, Bucket] {
  const own = new Bucket(new Counter(of, false), identity(combined), [], cost, limit);
  return [own, new Bucket(new Counter(of, true), identity(address), [identity(credential)], cost, limit)];
}

/** Builds the bucket of a policy that does not count a request if one of these credentials or clients is proven. */
export function partUnless(
  of: Policy,
  who: string,
  proofs: readonly string[],
  cost = 1,
  limit = of.limit,
): Bucket {
  return new Bucket(new Counter(of, false), identity(who), proofs.map(identity), cost, limit);
}

/** Builds a limiter in memory, with a small table by default. */
export function memoryLimiter(
  options: Omit<MemoryLimiterOptions, 'known'> & { readonly known?: KnownCounters },
): MemoryLimiter {
  return new MemoryLimiter({
    known: new KnownCounters({ countersMax: 4096 }),
    ...options,
  });
}

export type Answer =
  | { readonly kind: 'spent'; readonly admitted: boolean; readonly position: number; readonly spent: Spent }
  | { readonly kind: 'unavailable' };

export function spend(limiter: Pick<Limiter, 'spend'>, charge: Charge): Promise<Answer> {
  return new Promise((resolve) =>
    limiter.spend(charge, {
      onSpent: (spent, position) =>
        resolve({ kind: 'spent', admitted: position < spent.admitted, position, spent }),
      onStoreUnavailable: () => resolve({ kind: 'unavailable' }),
    }),
  );
}

/** Sends `times` requests at once, and returns how many were admitted. */
export async function burst(limiter: Pick<Limiter, 'spend'>, charge: Charge, times: number): Promise<number> {
  const answers = await Promise.all(Array.from({ length: times }, () => spend(limiter, charge)));
  return answers.filter((answer) => answer.kind === 'spent' && answer.admitted).length;
}
