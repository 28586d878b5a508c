/** The program of the peer fastify-rate-limit. It asks Redis about each request, and admits all if Redis fails. */
import rateLimit from '@fastify/rate-limit';
import { isLimited, keyOf, launch, serve } from './fastify-proxy.ts';
import { WINDOW_SECONDS } from './peer.ts';

await serve({ connectTimeout: 500, maxRetriesPerRequest: 1 }, async (app, redis) => {
  await app.register(rateLimit, {
    ...{ redis, max: launch.limit, timeWindow: WINDOW_SECONDS * 1000, skipOnError: true },
    ...{ keyGenerator: keyOf, allowList: (req) => !isLimited(req) },
  });
});
