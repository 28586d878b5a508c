/**
 * Counters in the application's own Redis (REDIS_URL), which all its processes share. This is the only file that uses
 * rate-limiter-flexible, and the API's only file that uses ioredis.
 *
 * A use is one Lua script of the library, so it is atomic. It has 50 ms: there is no offline queue, and nothing is sent
 * twice. After three failures in a row, or one lost connection, uses fail at once. Uses that waited together for the
 * same pause of the store are one failure. A probe then tests four times a second whether the store accepts writes
 * again. The API can also start while the store is unavailable.
 */
import { Redis } from 'ioredis';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { Millis } from '#shared/clock.ts';
import { FAIL_FAST } from '#shared/redis-options.ts';
import { within } from '#shared/within.ts';
import { type Counters, CountersUnavailable } from './counters.ts';

const FAILURES_TO_OPEN = 3;
const PROBE_MS: Millis = 250;
const PREFIX = 'fga';

interface RedisCountersOptions {
  /** redis://, or rediss:// for TLS; may contain a password. */
  readonly url: string;
  readonly budgetMs: Millis;
  /** Called when an outage begins, after which uses fail at once. */
  readonly onDown: (cause: Error) => void;
  /** Called when the outage is over. */
  readonly onUp: () => void;
}

export function createRedisCounters(options: RedisCountersOptions): Counters {
  const { budgetMs } = options;
  const redis = new Redis(options.url, FAIL_FAST);
  // The library has a time limit of its own, but after a stall of this process it ends before the answer is read.
  const inTime = <T>(call: Promise<T>): Promise<T> => within(budgetMs, call);
  let failures = 0;
  let probe: NodeJS.Timeout | undefined;
  let isClosed = false;
  /** Whether the first attempt to connect is running. Until it has ended, a store that is not ready is no outage. */
  let isConnecting = true;

  const down = (cause: Error): void => {
    if (probe !== undefined || isClosed) return;
    options.onDown(cause);
    let isAsking = false;
    probe = setInterval(async () => {
      if (isAsking) return;
      isAsking = true;
      const answer = redis.set(`${PREFIX}:probe`, '1', 'PX', 10_000);
      try {
        await inTime(answer);
        clearInterval(probe);
        probe = undefined;
        failures = 0;
        options.onUp();
      } catch {
        // The store is still unavailable. The next probe is sent when this one is answered or its connection is lost.
        await answer.catch(() => undefined);
      } finally {
        isAsking = false;
      }
    }, PROBE_MS);
    probe.unref();
  };
  redis.on('error', (error: Error) => down(error));
  redis.on('close', () => down(new Error('the connection is closed')));
  redis
    .connect()
    .catch((error: Error) => down(error))
    .finally(() => {
      isConnecting = false;
    });

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

  const asked = async <T>(ask: () => Promise<T>): Promise<T> => {
    if (probe !== undefined) throw new CountersUnavailable(new Error('the store is known to be away'));
    const failuresBefore = failures;
    try {
      const answer = await ask();
      failures = 0;
      return answer;
    } catch (error) {
      const cause = asError(error);
      if (!isConnecting && failures === failuresBefore) failures += 1;
      if (failures >= FAILURES_TO_OPEN || (!isConnecting && redis.status !== 'ready')) down(cause);
      throw new CountersUnavailable(cause);
    }
  };

  return {
    use: (name, key, windowSeconds) =>
      asked(async () => {
        const { consumedPoints, msBeforeNext } = await inTime(limiterFor(name, windowSeconds).consume(key));
        return { used: consumedPoints, resetMs: Math.max(1, msBeforeNext) };
      }),
    giveBack: (name, key) =>
      asked(async () => {
        const limiter = limiters.get(name);
        // A window that has ended would begin again, below zero.
        if (limiter === undefined || (await inTime(limiter.get(key))) === null) return;
        const { consumedPoints } = await inTime(limiter.reward(key));
        if (consumedPoints <= 0) await inTime(limiter.delete(key));
      }),
    async isUp() {
      if (probe !== undefined) return false;
      return inTime(redis.ping()).then(
        () => true,
        () => false,
      );
    },
    async close() {
      isClosed = true;
      clearInterval(probe);
      redis.disconnect();
    },
  };
}

/** Converts the library's own rejections of refused uses, which `points` rule out. */
function asError(error: unknown): Error {
  if (error instanceof RateLimiterRes) return new Error('the library refused a use', { cause: error });
  return error instanceof Error ? error : new Error(String(error));
}
