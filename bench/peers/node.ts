/** The peers that run on Node. `node/` has one program for each peer, and its own package.json. */
import { join } from 'node:path';
import { BENCH } from '#bench/run/programs.ts';
import { type Peer, WINDOW_SECONDS } from './peer.ts';

function nodePeer(name: string, label: string): Peer {
  return {
    name,
    label,
    needs: ['redis-server', 'npm-packages'],
    countsInRedis: true,
    start({ processes, port, upstreamPort, redisPort, limit, limits }) {
      const settings = {
        ...{ name, port, redisPort, limit, limits, windowSeconds: WINDOW_SECONDS },
        upstream: `http://127.0.0.1:${upstreamPort}`,
      };
      const main = join(BENCH, 'peers', 'node', 'main.mjs');
      return processes.node(name, ['--max-semi-space-size=32', main, JSON.stringify(settings)], {
        readyText: 'ready',
        env: { NODE_ENV: 'production' },
      });
    },
  };
}

export const FASTIFY_RLF = nodePeer('fastify-rlf', '@fastify/http-proxy + rate-limiter-flexible');
export const FASTIFY_RATE_LIMIT = nodePeer('fastify-rate-limit', '@fastify/rate-limit + http-proxy');
export const EXPRESS = nodePeer('express', 'Express + express-rate-limit + http-proxy-middleware');
