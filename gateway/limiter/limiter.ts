/**
 * Counts requests, and nothing else. This is the life of a charge:
 *
 * 1. charge.ts works out the buckets of a request: one for each policy that counts it and each identity that it presents.
 *    All of them are charged, or none.
 * 2. `knownExhausted`: known-counters.ts remembers counters by their digests. If one is surely exhausted, the request is
 *    denied from memory, and neither the store nor the upstream hears of it.
 * 3. `spend`: redis.ts gathers the charges of one tick of the event loop. Requests with the same charge ask once: `n` ask,
 *    `admitted` says how many of the n pass, and the first ones in order of arrival are those. store-calls.ts divides
 *    the charges into calls: in a Cluster by the slot of their keys.
 * 4. script.ts decides each call in one atomic step, on the store's clock, by the algorithms (algorithms/). It looks at all
 *    counters first, so a denied request is charged nowhere. bucket-state.ts works out what the client may still do, and
 *    when.
 * 5. What the reply says of counters and credentials is remembered for step 2, and for an outage.
 * 6. `conclude` settles what the reply decides: successes of a policy that counts failures are given back, and units that a
 *    reply reports are given back or charged (outcome.ts). `release` gives back a place in flight (leases.ts).
 *
 * When the store does not answer in time (patience.ts), outage.ts stops asking it until it is back, and local-decisions.ts
 * decides by each policy's `onStoreFailure`. memory.ts then counts in this process: from what it remembers, and against its
 * share of the limit. uncommitted.ts keeps what was admitted so, until the store has been charged for it. Without any store
 * memory.ts is all there is.
 */

import type { Identity } from '#gateway/identity/digest.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import type { BucketState } from './bucket-state.ts';
import type { Bucket, Charge } from './charge.ts';

/** The result of a charge, shared by all requests that asked together. A denial is a result, not an error. */
export interface Spent {
  readonly buckets: readonly Bucket[];
  /** The first so many of those who asked are admitted. */
  readonly admitted: number;
  /** Bucket by bucket, before the first of those who asked; null: nothing is charged there, as the credential is proven. */
  readonly states: readonly (BucketState | null)[];
  /** Name of the leases of those admitted (leases.ts); null: they hold none. */
  readonly leases: string | null;
  /** Decided by this process without the store. */
  readonly isLocal: boolean;
}

/** An exhausted counter that this process knows of. */
export interface Exhausted {
  readonly bucket: Bucket;
  /** Units known to be in use. */
  readonly used: number;
  /** When there is surely room again. */
  readonly resetMs: Millis;
}

/** Says how much an admitted request takes of one bucket after all. */
export interface Outcome {
  /** Charged was its cost. */
  readonly bucket: Bucket;
  /** On the store's clock. */
  readonly chargedAt: Millis;
  readonly units: number;
  /** The reply lacks the header that should report the units. */
  readonly lacksUnits: boolean;
}

/** A request that asked for a charge. */
export interface LimitListener {
  /** @param position among those who asked together, from 0: admitted when below `spent.admitted` */
  onSpent(spent: Spent, position: number): void;
  /** The store is away and a policy says: deny. */
  onStoreUnavailable(): void;
}

export interface Limiter {
  /** The buckets of a charge that this process knows to be exhausted; null when the charge has to be decided. */
  knownExhausted(charge: Charge): readonly Exhausted[] | null;
  /** Answers the listener exactly once, now or later, while the store may be slow. Never throws. */
  spend(charge: Charge, listener: LimitListener): void;
  /** Called once for each admitted request when its outcome is known. @param isLocal it was decided without the store */
  conclude(outcomes: readonly Outcome[], isLocal: boolean): void;
  /** Called once for each admitted request when it is no longer in flight. @param position among those who asked together */
  release(spent: Spent, position: number): void;
  /** Whether this process knows that it is proven. If not, the store is asked, and an unproven one burdens its address too. */
  isProven(credential: Identity): boolean;
  /**
   * Asks the store which of these credentials are proven, if this process does not know; `isProven` knows it then.
   *
   * @returns null: nothing has to be asked. The promise never rejects: without an answer they stay unproven
   */
  askProofs(credentials: readonly Identity[]): Promise<void> | null;
  /** This process saw it work within the last hour, so another success need not be reported. */
  isProofFresh(credential: Identity): boolean;
  /** Remembers, for all replicas, that this credential has worked. */
  prove(credential: Identity): void;
  /** The credential was refused and is no longer proven. */
  withdraw(credential: Identity): void;
  close(): Promise<void>;
}

/** How long a credential counts as proven after it last worked. */
export const PROVEN_MS: Millis = 30 * 86_400_000;
/** How long this process believes in a proof before it asks the store again, and before it reports the next success. */
export const PROVEN_LOCALLY_MS: Millis = 3_600_000;

/**
 * One replica's share of a limit; those of all replicas add up to it. Which of them get the odd ones differs between
 * policies, so that no replica is without a share everywhere.
 *
 * @param rank from 0
 * @param capacity the policy's unless an override says another
 */
export function shareOf(policy: Policy, rank: number, replicas: number, capacity = policy.capacity): number {
  const { index } = policy;
  if (replicas <= 1) return capacity;
  const place = (rank + index) % replicas;
  return Math.floor(capacity / replicas) + (place < capacity % replicas ? 1 : 0);
}
