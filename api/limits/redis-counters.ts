/**
 * Counters in the application's own Redis (REDIS_URL), which all its processes share. This is the only file that uses
 * rate-limiter-flexible, and the API's only file that uses ioredis.
 *
 * A use is one Lua script of the library, so it is atomic. One that gets no answer in time closes the connection: what is
 * on its way then fails, and what follows fails at once, until the store answers a new connection. The API can also
 * start while the store is away.
 */
import type { FastifyBaseLogger } from 'fastify';
import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import type { Millis } from '#shared/clock.ts';
import { FAIL_FAST } from '#shared/redis-options.ts';
import { within } from '#shared/within.ts';
import { type Counters, CountersUnavailable } from './counters.ts';

const PREFIX = 'fga';
/** Maximum delay of a request by a check. */
const BUDGET_MS: Millis = 50;
const AWAY =
  'REDIS_URL does not answer: application limits allow every request, except wrong PINs of surveys, and throttled audit entries are skipped';

/** @param url redis://, or rediss:// for TLS; may contain a password */
export function createRedisCounters(
  url: string,
  log: Pick<FastifyBaseLogger, 'info' | 'warn'>,
  budgetMs = BUDGET_MS,
): Counters {
  const redis = new Redis(url, { ...FAIL_FAST, disconnectTimeout: budgetMs });
  let isAway = false;
  let isClosed = false;

  const away = ({ message }: Error): void => {
    if (!isAway && !isClosed) log.warn({ cause: message }, AWAY);
    isAway = true;
  };
  redis.on('error', away);
  redis.on('close', () => away(new Error('the connection is closed')));
  redis.on('ready', () => {
    if (isAway) log.info({}, 'REDIS_URL answers again: application limits count');
    isAway = false;
  });
  redis.connect().catch(away);

  /** One limiter of the library for each name. Their `points` are never reached, because the caller decides. */
  const limiters = new Map<string, RateLimiterRedis>();
  const limiterFor = (name: string, duration: number): RateLimiterRedis => {
    const known = limiters.get(name);
    if (known !== undefined) return known;
    const limiter = new RateLimiterRedis({
      ...{ storeClient: redis, keyPrefix: `${PREFIX}:${name}`, duration, points: Number.MAX_SAFE_INTEGER },
      rejectIfRedisNotReady: true,
    });
    limiters.set(name, limiter);
    return limiter;
  };

  const inTime = async <T>(answer: Promise<T>): Promise<T> => {
    try {
      return await within(budgetMs, answer);
    } catch (error) {
      if (redis.status === 'ready') redis.disconnect(true);
      throw new CountersUnavailable(error);
    }
  };

  return {
    async use(name, key, windowSeconds) {
      const answer = await inTime(limiterFor(name, windowSeconds).consume(key));
      return { used: answer.consumedPoints, resetMs: Math.max(1, answer.msBeforeNext) };
    },
    async giveBack(name, key, windowSeconds) {
      await inTime(limiterFor(name, windowSeconds).reward(key));
    },
    isUp: () => redis.status === 'ready',
    async close() {
      isClosed = true;
      redis.disconnect();
    },
  };
}
