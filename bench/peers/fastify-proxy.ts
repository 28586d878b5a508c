/** The programs with Fastify share this: `node PROGRAM LAUNCH` counts in Redis, and forwards what it admits. */
import { once } from 'node:events';
import proxy from '@fastify/http-proxy';
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { Redis, type RedisOptions } from 'ioredis';
import type { Launch } from './peer.ts';

export const launch: Launch = JSON.parse(process.argv[2] ?? '{}');

export function isLimited({ url }: FastifyRequest): boolean {
  return url.startsWith('/api/');
}

export function keyOf({ headers, ip }: FastifyRequest): string {
  return String(headers['x-api-key'] ?? ip);
}

/** @param limit adds the limiter, which must be there before the routes */
export async function serve(
  options: Omit<RedisOptions, 'replyMapping'>,
  limit: (app: FastifyInstance, redis: Redis) => Promise<void>,
): Promise<void> {
  const redis = new Redis(launch.redisPort, '127.0.0.1', options);
  redis.on('error', () => {
    // The limiter gets the error from each command that fails.
  });
  await once(redis, 'ready');
  const app = fastify({ logger: false, bodyLimit: 16 * 1024 * 1024 });
  await limit(app, redis);
  await app.register(proxy, {
    upstream: `http://127.0.0.1:${launch.upstreamPort}`,
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
  await app.listen({ port: launch.port, host: '127.0.0.1', backlog: 1024 });
  process.stdout.write('ready\n');
  process.once('SIGTERM', () => process.exit(0));
}
