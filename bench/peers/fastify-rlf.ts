/** What Node programs usually do: @fastify/http-proxy behind rate-limiter-flexible. The baseline of the bench. */
import { join } from 'node:path';
import type { Peer } from './peer.ts';

export const FASTIFY_RLF: Peer = {
  name: 'fastify-rlf',
  label: '@fastify/http-proxy + rate-limiter-flexible',
  needs: ['redis-server'],
  countsInRedis: true,
  start({ processes, ...launch }) {
    const main = join(import.meta.dirname, 'fastify-rlf-server.ts');
    return processes.node(['--max-semi-space-size=32', main, JSON.stringify(launch)], /ready/, {
      env: { NODE_ENV: 'production' },
    });
  },
};
