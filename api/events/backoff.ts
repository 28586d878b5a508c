/** How long a failed delivery waits: 5 s, then 10 s, doubling up to an hour. Pure. */
import type { Random } from '#api/ids.ts';
import type { Millis } from '#shared/clock.ts';

const FIRST: Millis = 5_000;
/** A receiver that is back is not kept waiting longer than this. */
const LONGEST: Millis = 3_600_000;
/** Added at random, so that what failed together does not come back together. Never earlier than promised. */
const JITTER = 0.2;

/** @param failureCount failures so far, at least 1 */
export function retryDelay(failureCount: number, random: Random): Millis {
  const plain = Math.min(FIRST * 2 ** (failureCount - 1), LONGEST);
  return Math.round(plain * (1 + JITTER * fraction(random)));
}

/** 0 to 1, the end excluded. */
function fraction(random: Random): number {
  return Buffer.from(random(4)).readUInt32BE(0) / 2 ** 32;
}
