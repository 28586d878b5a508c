/** Selects the clients that a policy counts during a rollout. The choice is the same for every request and gateway. */
import type { DigestWords } from '#gateway/identity/digest.ts';
import type { Rollout } from './policy.ts';

const RANGE = 2 ** 32;

export function rolloutOf(percent: number, bucket: string): Rollout {
  let seed = 0x811c9dc5;
  for (let i = 0; i < bucket.length; i++) seed = Math.imul(seed ^ bucket.charCodeAt(i), 0x01000193);
  return { percent, seed };
}

export function isRolledOut({ percent, seed }: Rollout, words: DigestWords): boolean {
  let mixed = Math.imul(words[0] ^ seed, 0x9e3779b1);
  mixed = Math.imul(mixed ^ (mixed >>> 15) ^ words[1], 0x85ebca6b);
  return ((mixed ^ (mixed >>> 13)) >>> 0) / RANGE < percent / 100;
}
