/**
 * Counts requests, and nothing else. This is the life of a charge:
 *
 * 1. charge.ts works out the buckets of a request: one for each policy that counts it and each identity that it
 *    presents. All of them are charged, or none.
 * 2. `knownExhausted`: known-counters.ts remembers counters by their digests. If one is surely exhausted, the request is
 *    denied from memory, and neither the store nor the upstream hears of it.
 * 3. `spend`: redis.ts gathers the charges of one tick of the event loop. Requests with the same charge ask once: `n`
 *    ask, `admitted` says how many of the n pass, and the first ones in order of arrival are those. store-calls.ts
 *    divides the charges into calls: in a Cluster by the slot of their keys.
 * 4. script.ts decides each call in one atomic step, on the store's clock, by the algorithms (gateway/algorithms/). It
 *    looks at all counters first, so a denied request is charged nowhere. bucket-state.ts works out what the client may
 *    still do, and when.
 * 5. What the reply says of counters and credentials is remembered for step 2, and for an outage.
 * 6. `conclude` settles what the reply decides: successes of a policy that counts failures are given back, and units
 *    that a reply has cost are given back or charged (outcome.ts). `release` gives back a place in flight (leases.ts).
 *
 * When the store fails, or does not answer in time (patience.ts), outage.ts stops asking it until it is back, and
 * local-decisions.ts decides by each policy's `onStoreFailure`. memory.ts then counts in this process: from what it
 * remembers, and against its share of the limit. What was admitted so is owed, until the store has been charged for it.
 * Without any store memory.ts is all there is.
 *
 * Words: a *bucket* is one counter of one identity; a *charge* is all buckets of one request, which are charged together
 * or not at all; a *state* is what a bucket holds at a moment; a *lease* is a place in flight, which expires if its
 * process dies; *owed* usage was admitted without the store, and is charged to it later.
 *
 * @example
 *   limiter.spend(charge, {
 *     onSpent: (spent, position) => decide(spent, position), // { kind: 'allow', verdicts } or { kind: 'deny', violated }
 *     onStoreUnavailable: () => refusals.refuse(request, storeRefusal(buckets)),
 *   });
 */

import type { Identity } from '#gateway/identity/digest.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { VisitRule } from '#gateway/policy/regulars.ts';
import type { Millis } from '#shared/clock.ts';
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

/** A counter that this process knows to be exhausted. */
export interface Exhausted {
  readonly bucket: Bucket;
  /** Known usage in units. */
  readonly used: number;
  /** Time until there is certainly room again. */
  readonly resetMs: Millis;
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

export interface Limiter {
  /** Returns the buckets of a charge that this process knows to be exhausted; null if the charge must be decided. */
  knownExhausted(charge: Charge): readonly Exhausted[] | null;
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
