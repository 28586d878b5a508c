/**
 * All buckets of one request, charged together or not at all. A bucket is a policy's counter for one identity. A charge
 * lives as long as its request; the limiter stores the contents of the counters.
 *
 * An unproven credential is also charged to its client's address, in a counter of the same policy with the same limit.
 * So an address can use at most one limit with invented credentials (docs/policies-in-detail.md).
 */

import type { Algorithm } from '#gateway/algorithms/algorithm.ts';
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Counter, CoverCounter } from '#gateway/policy/counter.ts';
import { capacityFor, limitFor, type OverrideFacts } from '#gateway/policy/overrides.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { isRolledOut } from '#gateway/policy/rollout.ts';

/** The counter of a policy for one identity. */
export class Bucket {
  readonly counter: Counter;
  readonly identity: Identity;
  /** For the bucket of an address that counts unproven credentials: the bucket of the credential. Otherwise null. */
  readonly credential: Bucket | null;
  /** Units that a request takes. */
  readonly cost: number;
  /** The identity that must be proven. It differs from `identity` only for combined identities. */
  readonly proof: Identity;
  /** The limit of the policy, or the identity's own. */
  readonly limit: number;

  constructor(
    counter: Counter,
    identity: Identity,
    credential: Bucket | null = null,
    cost = 1,
    proof = identity,
    limit = counter.policy.limit,
  ) {
    this.counter = counter;
    this.identity = identity;
    this.credential = credential;
    this.cost = cost;
    this.proof = proof;
    this.limit = limit;
  }

  get policy(): Policy {
    return this.counter.policy;
  }

  /** The maximum number of units in use at once. */
  get capacity(): number {
    return capacityFor(this.counter.policy, this.limit);
  }

  /** Key in the store. The keys of one identity share a slot of a Cluster. */
  get key(): string {
    return `fg:{${this.identity.digest}${this.counter.keySuffix}`;
  }

  get algorithm(): Algorithm {
    return ALGORITHMS[this.counter.policy.algorithm];
  }

  /** Returns how much a number of units adds to the counter's state. */
  amountOf(units: number): number {
    return units * this.algorithm.amountPerUnit(this.policy.windowMs);
  }
}

/** @returns the key of the marker that this credential is proven */
export function proofKey(credential: Identity): string {
  return `fg:{${credential.digest}}:proven`;
}

export class Charge {
  /** The bucket for unproven credentials comes after the bucket of its credential. */
  readonly buckets: readonly Bucket[];
  /** Identifies the buckets. Charges of one tick with the same id are decided together. */
  readonly id: string;
  /** Whether some of the buckets count requests in flight. */
  readonly hasLeases: boolean;

  constructor(buckets: readonly Bucket[]) {
    this.buckets = buckets;
    this.hasLeases = buckets.some(({ policy }) => policy.algorithm === 'concurrency');
    let id = '';
    for (const { identity, counter, limit, cost } of buckets) {
      id += identity.digest + counter.keySuffix;
      if (limit !== counter.policy.limit) id += ` ${limit}`;
      if (cost !== 1) id += `*${cost}`;
    }
    this.id = id;
  }
}

/** The identities of a request, in the order of `Cover.identifiers`. */
export interface Counted {
  /** One entry for each of `Cover.identifiers`, in the same order. null if the request does not present it. */
  readonly identities: readonly (Identity | null)[];
  /** The identity whose proof counts, if it is another one. */
  readonly proofs: readonly (Identity | undefined)[] | null;
}

const ONE = (): number => 1;

/**
 * Returns the buckets that a request is charged to.
 *
 * @param cover the counters of the policies that match
 * @param identified the identities of the request
 * @param address the client's address, which is charged for unproven credentials
 * @param isProven tells whether a credential is proven
 * @param facts keys for overrides; null if no policy of the cover has overrides
 * @param unitsOf returns the cost of a request with the given capacity; default: 1
 * @returns null if nothing is counted
 */
export function chargeFor(
  cover: { readonly counters: readonly CoverCounter[] },
  { identities, proofs }: Counted,
  address: () => Identity,
  isProven: (credential: Identity) => boolean,
  facts: OverrideFacts | null,
  unitsOf: (counter: CoverCounter, capacity: number) => number = ONE,
): Charge | null {
  const buckets: Bucket[] = [];
  for (const counted of cover.counters) {
    const { counter, unproven, identifierAt } = counted;
    const identity = identities[identifierAt] ?? null;
    if (identity === null) continue;
    const proof = proofs?.[identifierAt] ?? identity;
    const { policy } = counter;
    if (policy.rollout !== null && !isRolledOut(policy.rollout, identity.words)) continue;
    const limit = limitFor(policy, identity.digest, facts);
    const units = unitsOf(counted, capacityFor(policy, limit));
    const bucket = new Bucket(counter, identity, null, units, proof, limit);
    buckets.push(bucket);
    // An identity that the policy file names counts as proven.
    if (unproven === null || isProven(proof) || policy.overrides?.digests.has(identity.digest)) continue;
    const who = address();
    const whole = limitFor(policy, who.digest, facts);
    buckets.push(new Bucket(unproven, who, bucket, unitsOf(counted, capacityFor(policy, whole)), who, whole));
  }
  return buckets.length === 0 ? null : new Charge(buckets);
}
