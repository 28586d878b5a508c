/**
 * All buckets of one request, charged together or not at all. A bucket is a policy's counter for one identity. A charge
 * lives as long as its request; the limiter stores the contents of the counters.
 *
 * An unproven credential is also charged to its client's address, in a counter of the same policy with the same limit.
 * So an address can use at most one limit with invented credentials (docs/policies-in-detail.md). If the policy itself
 * counts addresses without a credential, both have the same counter.
 */

import type { Algorithm } from '#gateway/algorithms/algorithm.ts';
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { type DigestWords, type Identity, identityOf } from '#gateway/identity/digest.ts';
import { type AddressIdentifier, needsProof, type SimpleIdentifier } from '#gateway/identity/identifier.ts';
import { capacityFor, limitFor, type OverrideFacts } from '#gateway/policy/clients.ts';
import type { Counter, CoverCounter } from '#gateway/policy/counter.ts';
import type { Group } from '#gateway/policy/groups.ts';
import { isRolledOut, type Policy } from '#gateway/policy/policy.ts';

const NOBODY: readonly Identity[] = [];

/** The counter of a policy for one identity. */
export class Bucket {
  readonly counter: Counter;
  readonly identity: Identity;
  /** Nothing is charged here if one of these identities is proven. Empty: always charged. */
  readonly unlessProven: readonly Identity[];
  /** Units that a request takes. */
  readonly cost: number;
  /** The limit of the policy, or the identity's own. */
  readonly limit: number;
  /** Digest of the request's value, if the policy counts different values; else null. */
  readonly value: string | null;
  /** Key in tables of this process. */
  readonly words: DigestWords;

  constructor(
    counter: Counter,
    identity: Identity,
    unlessProven: readonly Identity[] = NOBODY,
    cost = 1,
    limit = counter.policy.limit,
    value: string | null = null,
  ) {
    this.counter = counter;
    this.identity = identity;
    this.unlessProven = unlessProven;
    this.cost = cost;
    this.limit = limit;
    this.value = value;
    const [a, b, c, d] = identity.words;
    const [e, f] = counter.words;
    this.words = [a ^ e, b ^ f, c, d];
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

  /** Key of the marker that the request's value was used in this window; null if requests are counted. */
  get valueKey(): string | null {
    return this.value === null ? null : `${this.key}:${this.value}`;
  }

  /** The same in tables of this process. */
  get valueWords(): DigestWords | null {
    if (this.value === null) return null;
    const [a, b, c, d] = this.words;
    const [e, f, g, h] = identityOf(this.value).words;
    return [a ^ e, b ^ f, c ^ g, d ^ h];
  }

  get algorithm(): Algorithm {
    return ALGORITHMS[this.counter.policy.algorithm];
  }

  /** Returns how much a number of units adds to the counter's state. */
  amountOf(units: number): number {
    return units * this.algorithm.amountPerUnit(this.policy.windowMs);
  }
}

/** @returns the key of the marker that this credential is proven, or that this client is a regular */
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
    this.hasLeases = buckets.some(({ algorithm }) => algorithm.isHeld);
    let id = '';
    for (const { identity, counter, unlessProven, limit, cost, value } of buckets) {
      id += identity.digest + counter.keySuffix;
      for (const { digest } of unlessProven) id += digest;
      if (limit !== counter.policy.limit) id += ` ${limit}`;
      if (cost !== 1) id += `*${cost}`;
      if (value !== null) id += ` ${value}`;
    }
    this.id = id;
  }
}

/**
 * Joins the charges of one request by each reading of its path. Each bucket is charged once. A policy that has charged
 * the client's address for an unproven value does so once.
 */
export function joined(charges: readonly (Charge | null)[]): Charge | null {
  const buckets = new Map<string, Bucket>();
  const counted = new Set<Policy>();
  for (const charge of charges) {
    const added = (charge?.buckets ?? []).filter(
      ({ key, counter }) => !buckets.has(key) && !(counter.forUnproven && counted.has(counter.policy)),
    );
    for (const bucket of added) buckets.set(bucket.key, bucket);
    for (const { policy } of added) counted.add(policy);
  }
  return buckets.size === 0 ? null : new Charge([...buckets.values()]);
}

/** The identities of a request, in the order of `Cover.identifiers`. */
export interface Counted {
  /** One entry for each of `Cover.identifiers`, in the same order. null if the request does not present it. */
  readonly identities: readonly (Identity | null)[];
  /** The identity whose proof counts, if it is another one. */
  readonly proofs: readonly (Identity | undefined)[] | null;
  /** For each identifier of the kind `first`, the part that counts. null if there is none. */
  readonly parts: readonly (SimpleIdentifier | undefined)[] | null;
  /** One entry for each of `Cover.distinct`. null if the request does not present it. */
  readonly values: readonly (Identity | null)[];
}

const ONE = (): number => 1;

/**
 * Returns the buckets that a request is charged to.
 *
 * @param cover the counters of the policies that match
 * @param identified the identities of the request
 * @param address returns the client's address, which is charged for unproven credentials
 * @param isProven tells whether a credential is proven
 * @param facts keys for overrides; null if no policy of the cover has overrides
 * @param unitsOf returns the cost of a request with the given capacity; default: 1
 * @param classify asks a group about the client, see Group; default: the client's own identity frees it
 * @returns null if nothing is counted
 */
export function chargeFor(
  cover: { readonly counters: readonly CoverCounter[] },
  { identities, proofs, parts, values }: Counted,
  address: (identifier?: AddressIdentifier) => Identity,
  isProven: (credential: Identity) => boolean,
  facts: OverrideFacts | null,
  unitsOf: (counter: CoverCounter, capacity: number) => number = ONE,
  classify: (group: Group) => readonly Identity[] | null = () => [address()],
): Charge | null {
  const buckets: Bucket[] = [];
  for (const counted of cover.counters) {
    const { counter, unproven, identifierAt, valueAt } = counted;
    const identity = identities[identifierAt] ?? null;
    if (identity === null) continue;
    const value = valueAt < 0 ? null : (values[valueAt]?.digest ?? null);
    if (value === null && valueAt >= 0) continue;
    const proof = proofs?.[identifierAt] ?? identity;
    const { policy } = counter;
    const exempting = exemptingOf(counted, identities, isProven, classify);
    if (exempting === null) continue;
    // A rollout chooses clients, and those of a group are counted together.
    const { words } = policy.onlyFor === null ? identity : address();
    if (policy.rollout !== null && !isRolledOut(policy.rollout, words)) continue;
    const limit = limitFor(policy, identity.digest, facts);
    const units = unitsOf(counted, capacityFor(policy, limit));
    buckets.push(new Bucket(counter, identity, exempting, units, limit, value));
    const part = parts?.[identifierAt];
    if (unproven === null || (part !== undefined && !needsProof(part))) continue;
    // An identity that the policy file names counts as proven.
    if (isProven(proof) || policy.overrides?.clients.digests.has(identity.digest)) continue;
    const who = address(unproven.address);
    const whole = limitFor(policy, who.digest, facts);
    const cost = unitsOf(counted, capacityFor(policy, whole));
    buckets.push(new Bucket(unproven, who, [proof], cost, whole, value));
  }
  return buckets.length === 0 ? null : new Charge(buckets);
}

/**
 * Returns the identities of a request of which one frees it from this counter if it is proven.
 *
 * @returns null if one of them is known to be proven, or needs no proof
 */
function exemptingOf(
  { counter, exempt }: CoverCounter,
  identities: Counted['identities'],
  isProven: (credential: Identity) => boolean,
  classify: (group: Group) => readonly Identity[] | null,
): readonly Identity[] | null {
  const { onlyFor } = counter.policy;
  if (exempt.length === 0 && onlyFor === null) return NOBODY;
  const exempting: Identity[] = [];
  for (const { at, isProof } of exempt) {
    const credential = identities[at] ?? null;
    if (credential === null) continue;
    if (isProof || isProven(credential)) return null;
    exempting.push(credential);
  }
  if (onlyFor === null) return exempting;
  const freeing = classify(onlyFor);
  return freeing === null ? null : [...exempting, ...freeing];
}
