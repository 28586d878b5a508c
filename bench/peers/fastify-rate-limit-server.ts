/** The program of the peer fastify-rate-limit. It asks Redis about each request, and admits all if Redis fails. */
import rateLimit from '@fastify/rate-limit';
import { Redis } from 'ioredis';
import { connected, isLimited, keyOf, launch, serve } from './fastify-proxy.ts';
import { WINDOW_SECONDS } from './peer.ts';

const { limit, redisPort } = launch;
const redis = await connected(
  new Redis(redisPort, '127.0.0.1', { connectTimeout: 500, maxRetriesPerRequest: 1 }),
);
await serve(async (app) => {
  await app.register(rateLimit, {
    ...{ redis, max: limit, timeWindow: WINDOW_SECONDS * 1000, skipOnError: true },
    ...{ keyGenerator: keyOf, allowList: (req) => !isLimited(req) },
  });
});
