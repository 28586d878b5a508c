/**
 * The program of the peer fastify-rlf: `node fastify-rlf-server.ts LAUNCH`. It counts fixed windows in Redis, for all
 * machines together. While Redis is unavailable, it counts in its own memory. It also keeps in memory which clients have
 * exceeded a limit.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import proxy from '@fastify/http-proxy';
import fastify from 'fastify';
import { Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { type Launch, WINDOW_SECONDS } from './peer.ts';

const { port, upstreamPort, redisPort, limit, limits }: Launch = JSON.parse(process.argv[2] ?? '{}');
const keyOf = (req: IncomingMessage): string => String(req.headers['x-api-key'] ?? req.socket.remoteAddress);

const storeClient = new Redis(redisPort, '127.0.0.1', { enableOfflineQueue: false, maxRetriesPerRequest: 0 });
storeClient.on('error', () => {
  // The limiter gets the error from each command that fails.
});
await once(storeClient, 'ready');
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
const app = fastify({ logger: false, bodyLimit: 16 * 1024 * 1024 });
app.addHook('onRequest', async (req, reply) => {
  if (!req.url.startsWith('/api/')) return;
  const key = keyOf(req.raw);
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
await app.register(proxy, {
  upstream: `http://127.0.0.1:${upstreamPort}`,
  undici: { connections: 256, pipelining: 1 },
  replyOptions: {
    rewriteRequestHeaders: (req, headers) => ({
      ...headers,
      'x-forwarded-for': req.socket.remoteAddress,
      'x-forwarded-proto': 'http',
      'x-forwarded-host': headers.host,
    }),
  },
});
await app.listen({ port, host: '127.0.0.1', backlog: 1024 });
process.stdout.write('ready\n');
process.once('SIGTERM', () => process.exit(0));
