/** Node programs usually do this: @fastify/http-proxy behind a limiter that counts fixed windows in Redis. */
import { join } from 'node:path';
import type { Peer } from './peer.ts';

function fastifyPeer(name: string, label: string): Peer {
  return {
    ...{ name, label, needs: ['redis-server'], countsInRedis: true },
    start({ processes, ...launch }) {
      const main = join(import.meta.dirname, `${name}-server.ts`);
      return processes.node(['--max-semi-space-size=32', main, JSON.stringify(launch)], /ready/, {
        env: { NODE_ENV: 'production' },
      });
    },
  };
}

export const FASTIFY_RATE_LIMIT = fastifyPeer('fastify-rate-limit', '@fastify/rate-limit + Redis');
export const FASTIFY_RLF = fastifyPeer('fastify-rlf', 'rate-limiter-flexible + Redis');
