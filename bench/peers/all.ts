/** All peers, in the order of the report. */
import { FLOODGATE, FLOODGATE_BARE } from './floodgate.ts';
import { HAPROXY } from './haproxy.ts';
import { NGINX } from './nginx.ts';
import { NGINX_LIMIT_REQ } from './nginx-limit-req.ts';
import { NGINX_LUA } from './nginx-lua.ts';
import { EXPRESS, FASTIFY_RATE_LIMIT, FASTIFY_RLF } from './node.ts';
import type { Peer } from './peer.ts';

export const PEERS: readonly Peer[] = [
  ...[FLOODGATE, FLOODGATE_BARE, NGINX_LUA, NGINX_LIMIT_REQ, HAPROXY, NGINX],
  ...[FASTIFY_RLF, FASTIFY_RATE_LIMIT, EXPRESS],
];
