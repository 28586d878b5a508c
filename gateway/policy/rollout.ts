/** Which clients a policy counts while it is rolled out: the same ones at every request, on every gateway. */
import type { DigestWords } from '#gateway/identity/digest.ts';

export interface Rollout {
  /** Of all clients, in percent; more of them when it grows, and never others. */
  readonly percent: number;
  /** From the bucket's name, so that each policy begins with other clients. */
  readonly seed: number;
}

const RANGE = 2 ** 32;

/** @param percent of all clients, 0 to 100 @param bucket the name of the counter */
export function rolloutOf(percent: number, bucket: string): Rollout {
  let seed = 0x811c9dc5;
  for (let i = 0; i < bucket.length; i++) seed = Math.imul(seed ^ bucket.charCodeAt(i), 0x01000193);
  return { percent, seed };
}

/** @param words of the identity that would be counted */
export function isRolledOut({ percent, seed }: Rollout, words: DigestWords): boolean {
  let mixed = Math.imul(words[0] ^ seed, 0x9e3779b1);
  mixed = Math.imul(mixed ^ (mixed >>> 15) ^ words[1], 0x85ebca6b);
  return ((mixed ^ (mixed >>> 13)) >>> 0) / RANGE < percent / 100;
}
