/**
 * @fastify/rate-limit before @fastify/http-proxy. It counts fixed windows in Redis, for all machines together. It runs
 * only once for each request, so it cannot apply two limits.
 */
import rateLimit from '@fastify/rate-limit';
import { proxyApp } from './fastify-app.mjs';
import { keyOf, limitedPath, redis } from './redis.mjs';

export const start = (settings) =>
  proxyApp(settings, async (app) => {
    await app.register(rateLimit, {
      max: settings.limit,
      timeWindow: settings.windowSeconds * 1000,
      redis: await redis(settings.redisPort),
      skipOnError: true,
      keyGenerator: (req) => keyOf(req.raw),
      allowList: (req) => !limitedPath(req.url),
    });
  });
