import { needsProof } from '#gateway/identity/identifier.ts';
import type { Algorithm, Cost, Policy } from './policy.ts';

/** Counters of different algorithms have different contents, so their names differ. */
const SUFFIXES: Readonly<Record<Algorithm, string>> = {
  'fixed-window': '',
  'sliding-window': ':sliding',
  'token-bucket': ':token',
  concurrency: ':leases',
  'calendar-window': ':calendar',
};

/** The counter of a policy for all identities. One object exists for each policy of a file. */
export class Counter {
  readonly policy: Policy;
  /** Whether it counts the usage of an address with unproven credentials. */
  readonly forUnproven: boolean;
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
    const { algorithm, bucket, windowSeconds } = policy;
    this.keySuffix = `}:${bucket}:${windowSeconds}${SUFFIXES[algorithm]}${forUnproven ? ':unproven' : ''}`;
    this.words = nameWords(this.keySuffix);
  }
}

export interface CoverCounter {
  readonly counter: Counter;
  /** Counter for unproven keys of one address; null if the identifier needs no proof. */
  readonly unproven: Counter | null;
  /** Index in `Cover.identifiers`. */
  readonly identifierAt: number;
  /** Cost from the first policy that uses the counter and matches the request. */
  readonly cost: Cost;
}

/**
 * Returns all counters of a policy file: one for each bucket, and if it counts credentials, another for unproven ones.
 */
export function countersOf({ policies }: { readonly policies: readonly Policy[] }): Counter[] {
  return policies
    .filter(({ index, bucketId }) => index === bucketId)
    .flatMap((policy) =>
      needsProof(policy.identifier)
        ? [new Counter(policy, false), new Counter(policy, true)]
        : [new Counter(policy, false)],
    );
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
