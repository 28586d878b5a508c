import { needsProof } from '#gateway/identity/identifier.ts';
import type { Algorithm, Policy, PolicySet } from './policy.ts';

/** Counters of different algorithms hold different things, so their names differ. */
const SUFFIXES: Readonly<Record<Algorithm, string>> = {
  'fixed-window': '',
  'sliding-window': ':sliding',
  'token-bucket': ':token',
  concurrency: ':leases',
  'calendar-window': ':calendar',
};

/** A policy's counter, whoever is counted; made once for each policy of a file. */
export class Counter {
  readonly policy: Policy;
  /** It counts what an address spends on unproven credentials. */
  readonly forUnproven: boolean;
  /** The part of the store's key behind the digest. It has the window, so a policy with another window starts afresh. */
  readonly keySuffix: string;
  /** 30 bits each, from the counter's name, so that a known counter stays known after a reload. */
  readonly words: readonly [number, number];

  constructor(policy: Policy, forUnproven: boolean) {
    this.policy = policy;
    this.forUnproven = forUnproven;
    const { algorithm, bucket, windowSeconds } = policy;
    this.keySuffix = `}:${bucket}:${windowSeconds}${SUFFIXES[algorithm]}${forUnproven ? ':unproven' : ''}`;
    this.words = nameWords(this.keySuffix);
  }
}

/** All counters of a policy file: each bucket's, and of one that counts credentials also that for unproven ones. */
export function countersOf({ policies }: PolicySet): Counter[] {
  return policies
    .filter(({ index, bucketId }) => index === bucketId)
    .flatMap((policy) =>
      needsProof(policy.identifier)
        ? [new Counter(policy, false), new Counter(policy, true)]
        : [new Counter(policy, false)],
    );
}

/** FNV-1a, twice from different beginnings: names come from the policy file, not from clients. */
function nameWords(name: string): readonly [number, number] {
  let a = 0x811c9dc5;
  let b = 0x9dc5811c;
  for (let i = 0; i < name.length; i++) {
    a = Math.imul(a ^ name.charCodeAt(i), 0x01000193);
    b = Math.imul(b ^ (name.charCodeAt(i) + 0x55), 0x01000193);
  }
  return [(a >>> 0) & 0x3fffffff, (b >>> 0) & 0x3fffffff];
}
