/**
 * Counters in the application's own Redis (REDIS_URL), which all its processes share. This is the only file that uses
 * rate-limiter-flexible, and the API's only file that uses ioredis.
 *
 * A use is one Lua script of the library, so it is atomic. It has 50 ms: there is no offline queue, and nothing is sent
 * twice. While a few late answers are awaited, uses fail at once. The API can also start while the store is unavailable.
 */
import { Redis } from 'ioredis';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { Millis } from '#shared/clock.ts';
import { FAIL_FAST } from '#shared/redis-options.ts';
import { within } from '#shared/within.ts';
import { type Counters, CountersUnavailable } from './counters.ts';

/** Late answers at a time. Beyond it the store is known to be away, so no further request waits for it. */
const LATE_MAX = 3;
const PREFIX = 'fga';

interface RedisCountersOptions {
  /** redis://, or rediss:// for TLS; may contain a password. */
  readonly url: string;
  readonly budgetMs: Millis;
  /** Called when an outage begins. */
  readonly onDown: (cause: Error) => void;
  /** Called when the outage is over. */
  readonly onUp: () => void;
}

export function createRedisCounters({ url, budgetMs, onDown, onUp }: RedisCountersOptions): Counters {
  const redis = new Redis(url, FAIL_FAST);
  let late = 0;
  let isDown = false;
  let isClosed = false;

  const down = (cause: Error): void => {
    if (isDown || isClosed) return;
    isDown = true;
    onDown(cause);
  };
  const up = (): void => {
    if (isDown) onUp();
    isDown = false;
  };
  redis.on('error', down);
  redis.on('close', () => down(new Error('the connection is closed')));
  redis.connect().catch(down);

  /** One limiter of the library for each name. Their `points` are never reached, because our limiter decides. */
  const limiters = new Map<string, RateLimiterRedis>();
  const limiterFor = (name: string, duration: number): RateLimiterRedis => {
    const known = limiters.get(name);
    if (known !== undefined) return known;
    const limiter = new RateLimiterRedis({
      storeClient: redis,
      keyPrefix: `${PREFIX}:${name}`,
      points: Number.MAX_SAFE_INTEGER,
      duration,
      rejectIfRedisNotReady: true,
    });
    limiters.set(name, limiter);
    return limiter;
  };

  const asked = async <T>(call: () => Promise<T>): Promise<T> => {
    if (late >= LATE_MAX) throw new CountersUnavailable(new Error('the store is known to be away'));
    const answer = call();
    try {
      const found = await within(budgetMs, answer);
      up();
      return found;
    } catch (error) {
      late += 1;
      // It settles with its answer, or when its connection is lost.
      const settled = (): void => {
        late -= 1;
      };
      answer.then(settled, settled);
      // Without a connection, its events tell that the store is away.
      if (late >= LATE_MAX && redis.status === 'ready') down(asError(error));
      throw new CountersUnavailable(error);
    }
  };

  return {
    async use(name, key, windowSeconds) {
      const { consumedPoints, msBeforeNext } = await asked(() =>
        limiterFor(name, windowSeconds).consume(key),
      );
      return { used: consumedPoints, resetMs: Math.max(1, msBeforeNext) };
    },
    async giveBack(name, key) {
      const limiter = limiters.get(name);
      // A window that has ended would begin again, below zero.
      if (limiter === undefined || (await asked(() => limiter.get(key))) === null) return;
      const { consumedPoints } = await asked(() => limiter.reward(key));
      if (consumedPoints <= 0) await asked(() => limiter.delete(key));
    },
    isUp: () =>
      asked(() => redis.ping()).then(
        () => true,
        () => false,
      ),
    async close() {
      isClosed = true;
      redis.disconnect();
    },
  };
}

/** Converts the library's own rejections of refused uses, which `points` rule out. */
function asError(error: unknown): Error {
  if (error instanceof RateLimiterRes) return new Error('the library refused a use', { cause: error });
  return error instanceof Error ? error : new Error(String(error));
}
