/** The application's limiter. During an outage of the store of the counters, requests are allowed (fail open). */
import type { FastifyBaseLogger } from 'fastify';
import type { Signer } from '#api/auth/signer.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { type Counters, CountersUnavailable, createMemoryCounters } from './counters.ts';
import { type LimitName, limitTable } from './table.ts';

export interface Limiter {
  /**
   * Counts one use, also a refused one. Never rejects.
   *
   * @param identity an address, or the id of a user, key or organization, depending on the `identifier` of the limit
   * @returns the seconds to wait; null if the use is within the limit
   */
  consume(name: LimitName, identity: string): Promise<number | null>;
}

/** @param isDisabled whether RATE_LIMITING_DISABLED=1 is set */
export function createLimiter(counters: Counters, isDisabled: boolean): Limiter {
  return {
    async consume(name, identity) {
      if (isDisabled) return null;
      const { limit, windowSeconds } = limitTable[name];
      try {
        const { used, resetMs } = await counters.use(name, identity, windowSeconds);
        return used > limit ? Math.ceil(resetMs / 1000) : null;
      } catch (error) {
        if (!(error instanceof CountersUnavailable)) throw error;
        return null;
      }
    },
  };
}

const DIGEST_LENGTH = 32;

/** Replaces an identity in the store. It is the same in all processes that share the database. */
export function digestIdentity(signer: Signer, identity: string): string {
  return signer.sign(`floodgate.limit.v1:${identity}`).slice(0, DIGEST_LENGTH);
}

/**
 * Opens the store that the settings name: Redis, or memory without REDIS_URL. Neither an address nor the id of a key
 * reaches Redis.
 */
export async function openCounters(
  redisUrl: string | null,
  { clock, signer, log }: { readonly clock: Clock; readonly signer: Signer; readonly log: FastifyBaseLogger },
  budgetMs?: Millis,
): Promise<Counters> {
  if (redisUrl === null) return createMemoryCounters(clock);
  const { createRedisCounters } = await import('./redis-counters.ts');
  const counters = createRedisCounters(redisUrl, log, budgetMs);
  return {
    ...counters,
    use: (name, identity, seconds) => counters.use(name, digestIdentity(signer, identity), seconds),
    giveBack: (name, identity, seconds) => counters.giveBack(name, digestIdentity(signer, identity), seconds),
  };
}
