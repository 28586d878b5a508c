/**
 * Who is counted, without knowing who it is: an address or a credential becomes an HMAC-SHA-256 under a secret salt,
 * cut to 16 bytes. Only that digest reaches the store, the log or a metric. One identity is one object while it is
 * active, so its bucket keys, and what is known of its exhausted buckets, are worked out once.
 */
import { createHmac } from 'node:crypto';
import { Bucket, Charge, type Proof } from '#gateway/limiter/limiter.ts';
import type { Cover } from '#gateway/policy/match.ts';
import type { Identifier, Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import { TwoGenerations } from './two-generations.ts';

const DIGEST_BYTES = 16;
/** Active identities that are remembered, per generation. Two full ones, each charged on one route: 81 MB. */
const IDENTITIES_MAX = 65_536;

/** Belongs to one policy file: buckets are found by their number in it. */
export class Identity implements Proof {
  /** 22 characters, base64url. */
  readonly digest: string;
  provenUntil: Millis = 0;
  /** Few each, as one caller uses few routes: lists cost a fraction of maps, and there are tens of thousands of us. */
  readonly #buckets: Bucket[] = [];
  /** The head of a list: with one caller after another, each object on the way is one that no cache holds. */
  #charges: RememberedCharge | null = null;

  constructor(digest: string) {
    this.digest = digest;
  }

  get proofKey(): string {
    return `fg:{${this.digest}}:proven`;
  }

  /** @param policy the one that speaks for its counter, as in `Cover.counters` */
  bucket(policy: Policy): Bucket {
    return this.#bucket(policy, false);
  }

  /** The bucket of the same policy and limit for this address's credentials that never worked. */
  unprovenBucket(policy: Policy): Bucket {
    return this.#bucket(policy, true);
  }

  /** The charge last used for these policies. */
  remembered(cover: Cover): RememberedCharge | null {
    let charge = this.#charges;
    while (charge !== null && charge.cover !== cover) charge = charge.next;
    return charge;
  }

  /** In place of the one for the same policies, if any. */
  remember(charge: RememberedCharge): void {
    charge.next = this.#charges;
    this.#charges = charge;
    for (let before = charge; before.next !== null; before = before.next) {
      if (before.next.cover !== charge.cover) continue;
      before.next = before.next.next;
      return;
    }
  }

  #bucket(policy: Policy, onlyUnproven: boolean): Bucket {
    for (const bucket of this.#buckets) {
      if (bucket.policy.bucketId === policy.bucketId && bucket.onlyUnproven === onlyUnproven) return bucket;
    }
    const bucket = new Bucket(`${this.#key(policy)}${onlyUnproven ? ':unproven' : ''}`, policy, onlyUnproven);
    this.#buckets.push(bucket);
    return bucket;
  }

  /** The window is part of the key: a policy that gets another window counts afresh, any other edit counts on. */
  #key(policy: Policy): string {
    return `fg:{${this.digest}}:${policy.bucket}:${policy.windowSeconds}`;
  }
}

/** A charge, and what it follows from. */
class RememberedCharge extends Charge {
  readonly cover: Cover;
  /** null where its owner is the only one who can count. */
  readonly identities: readonly (Identity | null)[] | null;
  readonly address: Identity;
  next: RememberedCharge | null = null;

  constructor(
    cover: Cover,
    identities: readonly (Identity | null)[],
    address: Identity,
    proof: Identity | null,
  ) {
    super(bucketsOf(cover, identities, address, proof), proof);
    this.cover = cover;
    this.identities = cover.identifiers.length > 1 ? [...identities] : null;
    this.address = address;
  }

  isFor(identities: readonly (Identity | null)[], address: Identity, proof: Identity | null): boolean {
    if (this.proof !== proof || (proof !== null && this.address !== address)) return false;
    if (this.identities === null) return true;
    for (let i = 0; i < identities.length; i++) if (this.identities[i] !== identities[i]) return false;
    return true;
  }
}

export class Identities {
  readonly #salt: string;
  readonly #known: TwoGenerations<Identity>;

  /**
   * @param salt any length; whoever knows it can test guesses against digests
   * @param generationMax identities of one generation
   */
  constructor(salt: string, generationMax = IDENTITIES_MAX) {
    this.#salt = salt;
    this.#known = new TwoGenerations(generationMax);
  }

  /** @param value the normalised address or the credential */
  of(identifier: Identifier, value: string): Identity {
    // Addresses are one space whatever the identifier is called; credentials are told apart by it. Neither can pass
    // for the other: a key that reads like somebody's address is not that address.
    const key =
      identifier.kind === 'address' ? `address\0${value}` : `credential\0${identifier.name}\0${value}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const digest = createHmac('sha256', this.#salt)
      .update(key)
      .digest()
      .subarray(0, DIGEST_BYTES)
      .toString('base64url');
    const identity = new Identity(digest);
    this.#known.set(key, identity);
    return identity;
  }
}

/**
 * What a request has to be charged to.
 *
 * @param cover the policies that match
 * @param identities in the order of `cover.identifiers`; null where the request presents no such credential
 * @param address the client's address, which answers for credentials that never worked
 * @returns null when no policy applies
 */
export function chargeFor(
  cover: Cover,
  identities: readonly (Identity | null)[],
  address: Identity,
  now: Millis,
): Charge | null {
  let owner: Identity | null = null;
  for (let i = 0; i < identities.length && owner === null; i++) owner = identities[i] ?? null;
  if (owner === null) return null;
  const proof = unproven(cover, identities, now);
  const remembered = owner.remembered(cover);
  if (remembered?.isFor(identities, address, proof) === true) return remembered;
  const charge = new RememberedCharge(cover, identities, address, proof);
  owner.remember(charge);
  return charge;
}

/** The first credential among the identities that has not worked yet. */
function unproven(cover: Cover, identities: readonly (Identity | null)[], now: Millis): Identity | null {
  for (let i = 0; i < identities.length; i++) {
    const identity = identities[i];
    if (identity && cover.identifiers[i]?.kind === 'credential' && identity.provenUntil <= now)
      return identity;
  }
  return null;
}

function bucketsOf(
  cover: Cover,
  identities: readonly (Identity | null)[],
  address: Identity,
  proof: Identity | null,
): Bucket[] {
  const buckets: Bucket[] = [];
  for (const counter of cover.counters) {
    const identity = identities[cover.identifiers.indexOf(counter.identifier)];
    if (!identity) continue;
    buckets.push(identity.bucket(counter));
    if (proof === identity) buckets.push(address.unprovenBucket(counter));
  }
  return buckets;
}
