import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { type AddressIdentifier, type Identifier, needsProof } from '#gateway/identity/identifier.ts';
import type { Cost, Policy } from './policy.ts';

/** The counter of a policy for all identities. One object exists for each policy of a file. */
export class Counter {
  readonly policy: Policy;
  /** Whether it counts the usage of an address with unproven credentials. */
  readonly forUnproven: boolean;
  /** How it counts the address of unproven credentials; undefined for the usual way. */
  readonly address: AddressIdentifier | undefined;
  /**
   * The part of the store's key after the digest. It contains the window, so a policy with another window starts from
   * zero.
   */
  readonly keySuffix: string;
  /**
   * Two hashes of the counter's name, of 30 bits each. They stay the same after a reload, so remembered counters stay
   * valid.
   */
  readonly words: readonly [number, number];

  constructor(policy: Policy, forUnproven: boolean) {
    this.policy = policy;
    this.forUnproven = forUnproven;
    const { algorithm, bucket, windowSeconds, distinct } = policy;
    const counted = addressCountedBy(policy.identifier);
    this.address = counted ?? undefined;
    const separate = forUnproven && counted === null ? ':unproven' : '';
    const what = distinct === null ? '' : ':values';
    this.keySuffix = `}:${bucket}:${windowSeconds}${ALGORITHMS[algorithm].keySuffix}${what}${separate}`;
    this.words = nameWords(this.keySuffix);
  }
}

interface Exemption {
  /** Index in `Cover.identifiers`. */
  readonly at: number;
  /** Whether the credential needs no other proof. */
  readonly isProof: boolean;
}

export interface CoverCounter {
  readonly counter: Counter;
  /** Counter for unproven keys of one address; null if the identifier needs no proof. */
  readonly unproven: Counter | null;
  /** Index in `Cover.identifiers`. */
  readonly identifierAt: number;
  /** Identifiers whose proven credentials are not counted: the policy's `unless`, and the keys of regulars. */
  readonly exempt: readonly Exemption[];
  /** Index in `Cover.distinct` of the first policy that uses the counter and matches the request; -1 if none. */
  readonly valueAt: number;
  /** Cost from the first policy that uses the counter and matches the request. */
  readonly cost: Cost;
}

/**
 * Returns all counters of a policy file: one for each bucket, and if it counts credentials, another for unproven ones,
 * unless they share the first one.
 */
export function countersOf({ policies }: { readonly policies: readonly Policy[] }): Counter[] {
  return policies
    .filter(({ index, bucketId }) => index === bucketId)
    .flatMap((policy) =>
      needsProof(policy.identifier) && addressCountedBy(policy.identifier) === null
        ? [new Counter(policy, false), new Counter(policy, true)]
        : [new Counter(policy, false)],
    );
}

/**
 * Returns how a policy counts clients that present nothing else. Its counter for unproven credentials is then the same
 * as for these clients, so a client gains nothing by inventing one.
 */
function addressCountedBy(identifier: Identifier): AddressIdentifier | null {
  return identifier.kind === 'first' ? identifier.address : null;
}

/**
 * Hashes a name with FNV-1a, twice with different start values. Names come from the policy file, so clients cannot
 * cause collisions.
 */
function nameWords(name: string): readonly [number, number] {
  let a = 0x811c9dc5;
  let b = 0x9dc5811c;
  for (let i = 0; i < name.length; i++) {
    a = Math.imul(a ^ name.charCodeAt(i), 0x01000193);
    b = Math.imul(b ^ (name.charCodeAt(i) + 0x55), 0x01000193);
  }
  return [(a >>> 0) & 0x3fffffff, (b >>> 0) & 0x3fffffff];
}
