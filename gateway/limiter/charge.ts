/**
 * What one request has to be charged to, all or nothing: a list of parts, each a policy's counter for one identity. A
 * charge lives as long as its request; what is known of its counters is in the limiter.
 *
 * An unproven credential is charged to its client's address as well, in a counter of the same policy with
 * the same limit, so that an address spends at most one limit on invented credentials (docs/policies.md).
 */
import type { Identity } from '#gateway/identity/digest.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { Cover, CoverCounter } from '#gateway/policy/match.ts';
import { capacityFor, limitFor, type OverrideFacts } from '#gateway/policy/overrides.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { isRolledOut } from '#gateway/policy/rollout.ts';

/** One counter of one identity. */
export class Part {
  readonly counter: Counter;
  readonly identity: Identity;
  /** Whose credential the counter for unproven ones is about; null in all other parts. */
  readonly credential: Part | null;
  /** How many units a request takes; 1 in plain charges. */
  readonly cost: number;
  /** Whose proof holds for it: its own identity's unless several make one. */
  readonly proof: Identity;
  /** The policy's, or the identity's own. */
  readonly limit: number;

  constructor(
    counter: Counter,
    identity: Identity,
    credential: Part | null = null,
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

  /** In the store. One identity's keys share a slot of a cluster. */
  get key(): string {
    return `fg:{${this.identity.digest}${this.counter.keySuffix}`;
  }
}

/** @returns the store's key that says when this credential last worked */
export function proofKey(credential: Identity): string {
  return `fg:{${credential.digest}}:proven`;
}

export class Charge {
  /** A part for unproven credentials stands behind the part of its credential. */
  readonly parts: readonly Part[];
  /** The same for charges of the same parts: those of one turn of the event loop are decided together. */
  readonly id: string;
  /** The script for plain charges understands all its parts; others go to the general one. */
  readonly isPlain: boolean;
  /** Some of its parts count requests in flight. */
  readonly hasLeases: boolean;

  constructor(parts: readonly Part[], isPlain: boolean) {
    this.parts = parts;
    this.isPlain = isPlain;
    this.hasLeases = !isPlain && parts.some(({ policy }) => policy.algorithm === 'concurrency');
    let id = '';
    for (const { identity, counter, limit } of parts) {
      id += identity.digest + counter.keySuffix;
      if (limit !== counter.policy.limit) id += ` ${limit}`;
    }
    if (!isPlain) for (const { cost } of parts) id += `*${cost}`;
    this.id = id;
  }
}

/** Whom a request is counted for, in the order of `Cover.identifiers`. */
export interface Counted {
  /** null where the request presents no such credential. */
  readonly identities: readonly (Identity | null)[];
  /** Whose proof holds, where it is another one's. */
  readonly proofs: readonly (Identity | undefined)[] | null;
}

const ONE = (): number => 1;

/**
 * What a request has to be charged to.
 *
 * @param cover the policies that match
 * @param identified whom the request is counted for
 * @param address the client's address, which answers for unproven credentials
 * @param isProven has this credential worked lately?
 * @param facts what overrides are looked up by; null where no policy of the cover has any
 * @param unitsOf what the request costs one who may use so much at once; 1 where the cover is plain
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
  const parts: Part[] = [];
  for (const counted of cover.counters) {
    const { counter, unproven, identifierAt } = counted;
    const identity = identities[identifierAt] ?? null;
    if (identity === null) continue;
    const proof = proofs?.[identifierAt] ?? identity;
    const { policy } = counter;
    if (policy.rollout !== null && !isRolledOut(policy.rollout, identity.words)) continue;
    const limit = limitFor(policy, identity.digest, facts);
    const units = unitsOf(counted, capacityFor(policy, limit));
    const part = new Part(counter, identity, null, units, proof, limit);
    parts.push(part);
    // An identity that the operator names counts as proven.
    if (unproven === null || isProven(proof) || policy.overrides?.digests.has(identity.digest)) continue;
    const who = address();
    const whole = limitFor(policy, who.digest, facts);
    parts.push(new Part(unproven, who, part, unitsOf(counted, capacityFor(policy, whole)), who, whole));
  }
  return parts.length === 0 ? null : new Charge(parts, cover.isPlain);
}
