/** The rest of the gateway uses the limiter by this file. README.md tells the life of a charge. */
import type { Identity } from '#gateway/identity/digest.ts';
import type { VisitRule } from '#gateway/policy/groups.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis, Seconds } from '#shared/clock.ts';
import type { RandomInt } from '#shared/random-int.ts';

import type { BucketState } from './bucket-state.ts';
import type { Bucket, Charge } from './charge.ts';

/** The result of a charge, shared by all requests of a batch. A denial is a result, not an error. */
export interface Spent {
  readonly buckets: readonly Bucket[];
  /** Number of admitted requests, which are the first ones of the batch. */
  readonly admitted: number;
  /**
   * State of each bucket before the first request; null if nothing is charged there because the credential is proven.
   */
  readonly states: readonly (BucketState | null)[];
  /** Name of the leases of the admitted requests (leases.ts); null if they hold none. */
  readonly leases: string | null;
  /** Whether this process decided without the store. */
  readonly isLocal: boolean;
}

/** The verdict of one policy on one request; a decision has one per policy. */
export interface Verdict {
  readonly policy: Policy;
  /** The maximum number of units that the client can use at once, from the policy or an override. */
  readonly capacity: number;
  /** The maximum in a window. It differs from the capacity for a token bucket with a burst. */
  readonly limit: number;
  /** Units left for other requests after this one. */
  readonly remaining: number;
  /** Admitted: time until all of the capacity is available again. Denied: time until there is room for such a request. */
  readonly resetMs: Millis;
}

/** The verdict of an exhausted policy. */
export interface Violation extends Verdict {
  /** The exhausted bucket. */
  readonly bucket: Bucket;
  /** Units in use before this request. */
  readonly used: number;
  /** The capacity, or this process's share of it. */
  readonly share: number;
  /** Whether the request costs more than the whole limit, so that waiting does not help. */
  readonly canNeverPass: boolean;
}

/** The final cost of an admitted request for one bucket. */
export interface Outcome {
  /** The bucket was charged with its cost before. */
  readonly bucket: Bucket;
  /** Time of the charge on the store's clock. */
  readonly chargedAt: Millis;
  readonly units: number;
  /** Whether the reply lacks the header that should report the units. */
  readonly lacksUnits: boolean;
}

/** A request that waits for the result of its charge. */
export interface LimitListener {
  /** @param position in the batch, from 0; admitted if it is below `spent.admitted` */
  onSpent(spent: Spent, position: number): void;
  /** Called if the store is unavailable and a policy has `onStoreFailure: deny`. */
  onStoreUnavailable(): void;
}

/** A charge, and all requests that wait for it. */
export interface PendingCheck {
  readonly charge: Charge;
  readonly listeners: LimitListener[];
  /** Name of the leases that it takes; null if it takes none. */
  readonly leases: string | null;
}

export interface Limiter {
  /** Returns the buckets of a charge that this process knows to be exhausted; null if the charge must be decided. */
  knownExhausted(charge: Charge): readonly Violation[] | null;
  /** Whether this process knows that it will deny the charge, so that the body of the request need not be read. */
  surelyDenies(charge: Charge): boolean;
  /** Calls the listener exactly once, now or later. Never throws. */
  spend(charge: Charge, listener: LimitListener): void;
  /**
   * Called once for each bucket of an admitted request that its reply settles, when its outcome is known.
   *
   * @param isLocal the request was decided without the store
   */
  conclude(outcomes: readonly Outcome[], isLocal: boolean): void;
  /** Called once for each admitted request when it is no longer in flight. @param position in its batch */
  release(spent: Spent, position: number): void;
  /**
   * Whether this process knows that it is proven. If not, the store decides, and an unproven one is charged to its
   * address too.
   */
  isProven(credential: Identity): boolean;
  /**
   * Asks the store which of these credentials are proven, unless this process knows. Then `isProven` knows it.
   *
   * @returns null if nothing has to be asked. The promise never rejects: without an answer they stay unproven
   */
  askProofs(credentials: readonly Identity[]): Promise<void> | null;
  /** Whether a success was reported within the last hour, so that another one need not be reported. */
  isProofFresh(credential: Identity): boolean;
  /** Records, for all replicas, that this credential has worked. */
  prove(credential: Identity): void;
  /** Records that the credential was refused and is no longer proven. */
  withdraw(credential: Identity): void;
  /**
   * Records, for all replicas, that this client had a good reply today.
   *
   * @param network returns the client's IPv6 network; null for IPv4
   */
  visited(client: Identity, rule: VisitRule, network: () => Identity | null): void;
  close(): Promise<void>;
}

/** How long a credential counts as proven after its last success. */
export const PROVEN_MS: Millis = 30 * 86_400_000;
/** How long this process trusts a proof before it asks the store again, and before it reports the next success. */
export const PROVEN_LOCALLY_MS: Millis = 3_600_000;

/**
 * Returns one replica's share of a limit. The shares of all replicas add up to it. Policies give the remainder to
 * different replicas, so that no replica is without a share everywhere.
 *
 * @param rank from 0
 * @param capacity of the policy or of an override
 */
export function shareOf(policy: Policy, rank: number, replicas: number, capacity = policy.capacity): number {
  const { index } = policy;
  if (replicas <= 1) return capacity;
  const place = (rank + index) % replicas;
  return Math.floor(capacity / replicas) + (place < capacity % replicas ? 1 : 0);
}

/**
 * Returns the number of whole seconds until a denied request has room again. It is the largest of the denying policies,
 * and at least 1. The random part of a policy is added to its own time, so the sum is never too short.
 *
 * @param randomInt null for the exact time
 */
export function retryAfterSeconds(
  violated: readonly Pick<Verdict, 'policy' | 'resetMs'>[],
  randomInt: RandomInt | null,
): Seconds {
  let longest = 1;
  for (const { policy, resetMs } of violated) {
    const exact = Math.max(1, Math.ceil(resetMs / 1000));
    const isExact = randomInt === null || policy.retryJitter === 0;
    longest = Math.max(longest, isExact ? exact : exact + randomInt(policy.retryJitter + 1));
  }
  return longest;
}
