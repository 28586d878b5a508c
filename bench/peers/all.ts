/** All peers, in the order of the report. */
import { CADDY_PLAIN } from './caddy.ts';
import { FASTIFY_RATE_LIMIT, FASTIFY_RLF } from './fastify.ts';
import { FLOODGATE } from './floodgate.ts';
import { HAPROXY } from './haproxy.ts';
import { NGINX_LIMIT_REQ } from './nginx-limit-req.ts';
import { NGINX_LUA } from './nginx-lua.ts';
import type { Peer } from './peer.ts';

const LIMITERS = [FLOODGATE, NGINX_LUA, FASTIFY_RATE_LIMIT, FASTIFY_RLF, NGINX_LIMIT_REQ, HAPROXY];
export const PEERS: readonly Peer[] = [...LIMITERS, CADDY_PLAIN];
