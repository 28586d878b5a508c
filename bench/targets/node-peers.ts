/** The peers that run on Node: one program each in bench/peers, told by environment what to do. */
import { join } from 'node:path';
import { limitOf, type PeerName, WINDOW_SECONDS } from '../scenarios.ts';
import { BENCH, missing, missingNpmPeers, NODE } from '../tools.ts';
import type { Peer } from './target.ts';

function nodePeer(name: PeerName, label: string): Peer {
  return {
    name,
    label,
    usesRedis: true,
    countsInRedis: true,
    missing: () => missingNpmPeers() ?? missing('redis-server', 'redis-server'),
    start: ({ processes, scenario, port, upstreamPort, redisPort }) =>
      processes.start(
        name,
        NODE,
        ['--max-semi-space-size=32', join(BENCH, 'peers', 'main.mjs'), join(BENCH, 'peers', `${name}.mjs`)],
        {
          port,
          cwd: join(BENCH, 'peers'),
          env: {
            NODE_ENV: 'production',
            PEER_PORT: String(port),
            PEER_UPSTREAM: `http://127.0.0.1:${upstreamPort}`,
            PEER_REDIS_PORT: String(redisPort),
            PEER_LIMIT: String(limitOf(scenario)),
            PEER_LIMITS: String(Math.max(1, scenario.limits)),
            PEER_WINDOW_SECONDS: String(WINDOW_SECONDS),
            PEER_WORKERS: String(scenario.workers),
          },
        },
      ),
  };
}

export const FASTIFY_RLF = nodePeer('fastify-rlf', '@fastify/http-proxy + rate-limiter-flexible');
export const FASTIFY_RATE_LIMIT = nodePeer('fastify-rate-limit', '@fastify/rate-limit + http-proxy');
export const EXPRESS = nodePeer('express', 'Express + express-rate-limit + http-proxy-middleware');
