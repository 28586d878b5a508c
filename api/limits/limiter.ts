/**
 * The application's limiter.
 *
 * It digests identities before they are counted, so neither an address nor the id of a key reaches the store. During an
 * outage of the store, requests are allowed (fail open). The beginning and the end of an outage are logged.
 */
import type { Signer } from '#api/auth/signer.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { type Counters, CountersUnavailable, createMemoryCounters } from './counters.ts';
import { type LimitName, limitTable } from './table.ts';

type LimitResult =
  /** `isCounted` is false if the store is unavailable or the limiter is disabled. */
  | { readonly isAllowed: true; readonly isCounted: boolean }
  | { readonly isAllowed: false; readonly retryAfterSeconds: number };

export interface Limiter {
  /**
   * Counts one use and tells whether it is within the limit. Never rejects. Refused uses count too.
   *
   * @param identity an address, or the id of a user, key or organization, depending on the `identifier` of the limit
   */
  consume(name: LimitName, identity: string): Promise<LimitResult>;
  /** Whether the store of the counters answers. The memory of the process always does. */
  isStoreUp(): Promise<boolean>;
}

interface LimiterLog {
  warn(fields: object, message: string): void;
  info(fields: object, message: string): void;
}

interface LimiterOptions {
  readonly counters: Counters;
  readonly signer: Signer;
  /** Whether RATE_LIMITING_DISABLED=1 is set. */
  readonly isDisabled: boolean;
}

/** Maximum delay of a request by a check. */
const BUDGET_MS: Millis = 50;
const DIGEST_LENGTH = 32;

/** Replaces an identity in the store. It is the same in all processes that share the database. */
export function digestIdentity(signer: Signer, identity: string): string {
  return signer.sign(`floodgate.limit.v1:${identity}`).slice(0, DIGEST_LENGTH);
}

export function createLimiter({ counters, signer, isDisabled }: LimiterOptions): Limiter {
  return {
    async consume(name, identity) {
      if (isDisabled) return { isAllowed: true, isCounted: false };
      const { limit, windowSeconds } = limitTable[name];
      try {
        const { used, resetMs } = await counters.use(name, digestIdentity(signer, identity), windowSeconds);
        if (used <= limit) return { isAllowed: true, isCounted: true };
        return { isAllowed: false, retryAfterSeconds: Math.ceil(resetMs / 1000) };
      } catch (error) {
        if (!(error instanceof CountersUnavailable)) throw error;
        return { isAllowed: true, isCounted: false };
      }
    },
    isStoreUp: () => counters.isUp(),
  };
}

/** Opens the store that the settings name: Redis, or memory without REDIS_URL. Outages are logged. */
export async function openCounters(
  redisUrl: string | null,
  clock: Clock,
  log: LimiterLog,
  budgetMs: Millis = BUDGET_MS,
): Promise<Counters> {
  if (redisUrl === null) return createMemoryCounters(clock);
  const { createRedisCounters } = await import('./redis-counters.ts');
  let since: Millis = 0;
  return createRedisCounters({
    url: redisUrl,
    budgetMs,
    onDown: (cause) => {
      since = clock();
      log.warn(
        { cause: cause.message },
        'REDIS_URL does not answer: application limits allow every request, except wrong PINs of surveys, and throttled audit entries are skipped',
      );
    },
    onUp: () => log.info({ outageMs: clock() - since }, 'REDIS_URL answers again: application limits count'),
  });
}
