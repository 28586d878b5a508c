/**
 * rate-limiter-flexible before @fastify/http-proxy. It counts fixed windows in Redis, for all machines together. While
 * Redis is unavailable, it counts in its own memory. It also keeps in memory which clients have exceeded a limit.
 */
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';
import { proxyApp } from './fastify-app.mjs';
import { keyOf, limitedPath, redis } from './redis.mjs';

export const start = (settings) =>
  proxyApp(settings, async (app) => {
    const { limit, limits, windowSeconds } = settings;
    const storeClient = await redis(settings.redisPort);
    const limiters = Array.from(
      { length: limits },
      (_, i) =>
        new RateLimiterRedis({
          storeClient,
          keyPrefix: `rl${i}`,
          points: limit,
          duration: windowSeconds,
          inMemoryBlockOnConsumed: limit + 1,
          insuranceLimiter: new RateLimiterMemory({ points: limit, duration: windowSeconds }),
        }),
    );
    app.addHook('onRequest', async (req, reply) => {
      if (!limitedPath(req.url)) return;
      const key = keyOf(req.raw);
      try {
        const { msBeforeNext, remainingPoints } =
          limiters.length === 1
            ? await limiters[0].consume(key)
            : (await Promise.all(limiters.map((limiter) => limiter.consume(key))))[0];
        reply.headers({
          'x-ratelimit-limit': limit,
          'x-ratelimit-remaining': remainingPoints,
          'x-ratelimit-reset': Math.ceil(msBeforeNext / 1000),
        });
      } catch (refusal) {
        if (refusal instanceof Error) throw refusal;
        return reply
          .code(429)
          .header('retry-after', Math.ceil(refusal.msBeforeNext / 1000))
          .send({ error: 'too many requests' });
      }
    });
  });
