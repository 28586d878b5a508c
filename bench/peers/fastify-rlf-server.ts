/**
 * The program of the peer fastify-rlf, for all machines together. While Redis is unavailable, it counts in its own memory.
 * It also keeps in memory which clients have exceeded a limit.
 */
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { isLimited, keyOf, launch, serve } from './fastify-proxy.ts';
import { WINDOW_SECONDS } from './peer.ts';

const { limit, limits } = launch;

await serve({ enableOfflineQueue: false, maxRetriesPerRequest: 0 }, async (app, storeClient) => {
  const window = { points: limit, duration: WINDOW_SECONDS };
  const insuranceLimiter = new RateLimiterMemory(window);
  const inRedis = { ...window, storeClient, insuranceLimiter, inMemoryBlockOnConsumed: limit + 1 };
  const limiters = Array.from(
    { length: limits },
    (_, i) => new RateLimiterRedis({ ...inRedis, keyPrefix: `rl${i}` }),
  );
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
      const seconds = Math.ceil(refusal.msBeforeNext / 1000);
      return reply.code(429).header('retry-after', seconds).send({ error: 'too many requests' });
    }
  });
});
