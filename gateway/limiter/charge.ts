/**
 * What one request has to be charged to, all or nothing: a list of parts, each a policy's counter for one identity. A
 * charge lives as long as its request; what is known of its counters is in the limiter.
 *
 * A credential that has not worked yet is charged to its client's address as well, in a counter of the same policy with
 * the same limit, so that an address spends at most one limit on invented credentials (docs/policies.md).
 */
import type { Identity } from '#gateway/identity/digest.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { Cover, CoverCounter } from '#gateway/policy/match.ts';
import type { Policy } from '#gateway/policy/policy.ts';

/** One counter of one identity. */
export class Part {
  readonly counter: Counter;
  readonly identity: Identity;
  /** Whose credential the counter for unproven ones is about; null in all other parts. */
  readonly credential: Part | null;
  /** How many units a request takes; 1 in plain charges. */
  readonly cost: number;

  constructor(counter: Counter, identity: Identity, credential: Part | null = null, cost = 1) {
    this.counter = counter;
    this.identity = identity;
    this.credential = credential;
    this.cost = cost;
  }

  get policy(): Policy {
    return this.counter.policy;
  }

  /** The most that can be used of it at once. */
  get capacity(): number {
    return this.counter.policy.capacity;
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

  constructor(parts: readonly Part[], isPlain: boolean) {
    this.parts = parts;
    this.isPlain = isPlain;
    let id = '';
    for (const { identity, counter } of parts) id += identity.digest + counter.keySuffix;
    if (!isPlain) for (const { cost } of parts) id += `*${cost}`;
    this.id = id;
  }
}

/** Of a limit, what only credentials with a history may spend when an address has spent the rest on unproven ones. */
export function reservedOf(limit: number): number {
  return limit === 1 ? 0 : Math.ceil(limit / 5);
}

const ONE = (): number => 1;

/**
 * What a request has to be charged to.
 *
 * @param cover the policies that match
 * @param identities in the order of `cover.identifiers`; null where the request presents no such credential
 * @param address the client's address, which answers for credentials that have not worked yet
 * @param isProven has this credential worked lately?
 * @param unitsOf what the request costs; 1 where the cover is plain
 * @returns null when nobody is counted
 */
export function chargeFor(
  cover: Cover,
  identities: readonly (Identity | null)[],
  address: () => Identity,
  isProven: (credential: Identity) => boolean,
  unitsOf: (counter: CoverCounter) => number = ONE,
): Charge | null {
  const parts: Part[] = [];
  for (const counted of cover.counters) {
    const { counter, unproven, identifierAt } = counted;
    const identity = identities[identifierAt] ?? null;
    if (identity === null) continue;
    const units = unitsOf(counted);
    const part = new Part(counter, identity, null, units);
    parts.push(part);
    if (unproven !== null && !isProven(identity)) parts.push(new Part(unproven, address(), part, units));
  }
  return parts.length === 0 ? null : new Charge(parts, cover.isPlain);
}
