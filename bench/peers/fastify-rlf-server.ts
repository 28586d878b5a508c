/**
 * The program of the peer fastify-rlf, for all machines together. While Redis is unavailable, it counts in its own memory.
 * It also keeps in memory which clients have exceeded a limit.
 */
import { Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { connected, isLimited, keyOf, launch, serve } from './fastify-proxy.ts';
import { WINDOW_SECONDS } from './peer.ts';

const { limit, limits, redisPort } = launch;
const storeClient = await connected(
  new Redis(redisPort, '127.0.0.1', { enableOfflineQueue: false, maxRetriesPerRequest: 0 }),
);
const limiters = Array.from(
  { length: limits },
  (_, i) =>
    new RateLimiterRedis({
      storeClient,
      keyPrefix: `rl${i}`,
      points: limit,
      duration: WINDOW_SECONDS,
      inMemoryBlockOnConsumed: limit + 1,
      insuranceLimiter: new RateLimiterMemory({ points: limit, duration: WINDOW_SECONDS }),
    }),
);
await serve(async (app) => {
  app.addHook('onRequest', async (req, reply) => {
    if (!isLimited(req)) return;
    const key = keyOf(req);
    try {
      const [first] = await Promise.all(limiters.map((limiter) => limiter.consume(key)));
      reply.headers({
        'x-ratelimit-limit': limit,
        'x-ratelimit-remaining': first?.remainingPoints,
        'x-ratelimit-reset': Math.ceil((first?.msBeforeNext ?? 0) / 1000),
      });
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      return reply
        .code(429)
        .header('retry-after', Math.ceil(refusal.msBeforeNext / 1000))
        .send({ error: 'too many requests' });
    }
  });
});
