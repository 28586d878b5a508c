/** Everything that can stand between the load and the upstream, in the order of the report. */
import type { PeerName } from '../scenarios.ts';
import { FLOODGATE, FLOODGATE_BARE } from './gateway.ts';
import { HAPROXY } from './haproxy.ts';
import { NGINX_LIMIT_REQ, NGINX_LUA, NGINX_PLAIN } from './nginx.ts';
import { EXPRESS, FASTIFY_RATE_LIMIT, FASTIFY_RLF } from './node-peers.ts';
import type { Peer } from './target.ts';

export const PEERS: readonly Peer[] = [
  FLOODGATE,
  FLOODGATE_BARE,
  NGINX_LUA,
  NGINX_LIMIT_REQ,
  HAPROXY,
  NGINX_PLAIN,
  FASTIFY_RLF,
  FASTIFY_RATE_LIMIT,
  EXPRESS,
];

export function peerOf(name: PeerName): Peer | undefined {
  return PEERS.find((peer) => peer.name === name);
}

/** Nothing in between: the upstream itself, which latency is compared with. */
export const DIRECT_LABEL = 'the upstream itself';
