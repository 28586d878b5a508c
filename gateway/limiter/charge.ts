/**
 * All buckets of one request, charged together or not at all. A bucket is a policy's counter for one identity. A charge
 * lives as long as its request; the limiter knows what its counters hold.
 *
 * An unproven credential is charged to its client's address as well, in a counter of the same policy with the same limit,
 * so that an address spends at most one limit on invented credentials (docs/policies-in-detail.md).
 */
import type { Identity } from '#gateway/identity/digest.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { Cover, CoverCounter } from '#gateway/policy/match.ts';
import { capacityFor, limitFor, type OverrideFacts } from '#gateway/policy/overrides.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { isRolledOut } from '#gateway/policy/rollout.ts';
import type { Algorithm } from './algorithms/algorithm.ts';
import { ALGORITHMS } from './algorithms/table.ts';

/** One counter of one identity. */
export class Bucket {
  readonly counter: Counter;
  readonly identity: Identity;
  /** The bucket of the credential, if this one counts what its address spends on unproven ones; else null. */
  readonly credential: Bucket | null;
  /** How many units a request takes. */
  readonly cost: number;
  /** The identity that has to be proven: its own, unless several make one. */
  readonly proof: Identity;
  /** The policy's, or the identity's own. */
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

  /** The most that can be used of it at once. */
  get capacity(): number {
    return capacityFor(this.counter.policy, this.limit);
  }

  /** In the store. One identity's keys share a slot of a Cluster. */
  get key(): string {
    return `fg:{${this.identity.digest}${this.counter.keySuffix}`;
  }

  get algorithm(): Algorithm {
    return ALGORITHMS[this.counter.policy.algorithm];
  }

  /** How much so many units add to its counter's state. */
  amountOf(units: number): number {
    return units * this.algorithm.amountPerUnit(this.policy.windowMs);
  }
}

/** @returns the store's key that says when this credential last worked */
export function proofKey(credential: Identity): string {
  return `fg:{${credential.digest}}:proven`;
}

export class Charge {
  /** A bucket for unproven credentials stands behind the bucket of its credential. */
  readonly buckets: readonly Bucket[];
  /** The same for charges of the same buckets: those of one tick of the event loop are decided together. */
  readonly id: string;
  /** Some of its buckets count requests in flight. */
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

/** The identities that a request is counted for, in the order of `Cover.identifiers`. */
export interface Counted {
  /** null where the request presents no such credential. */
  readonly identities: readonly (Identity | null)[];
  /** The identity whose proof counts, if it is another one. */
  readonly proofs: readonly (Identity | undefined)[] | null;
}

const ONE = (): number => 1;

/**
 * Works out the buckets that a request has to be charged to.
 *
 * @param cover the policies that match
 * @param identified whom the request is counted for
 * @param address the client's address, which answers for unproven credentials
 * @param isProven has this credential worked lately?
 * @param facts what overrides are looked up by; null where no policy of the cover has any
 * @param unitsOf what the request costs one who may use so much at once; unset: 1
 * @returns null when nobody is counted
 */
export function chargeFor(
  cover: Cover,
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
    // An identity that the operator names counts as proven.
    if (unproven === null || isProven(proof) || policy.overrides?.digests.has(identity.digest)) continue;
    const who = address();
    const whole = limitFor(policy, who.digest, facts);
    buckets.push(new Bucket(unproven, who, bucket, unitsOf(counted, capacityFor(policy, whole)), who, whole));
  }
  return buckets.length === 0 ? null : new Charge(buckets);
}
