/** All peers, in the order of the report. */
import { CADDY_PLAIN } from './caddy.ts';
import { FASTIFY_RLF } from './fastify.ts';
import { FLOODGATE } from './floodgate.ts';
import { NGINX_LIMIT_REQ } from './nginx-limit-req.ts';
import { NGINX_LUA } from './nginx-lua.ts';
import type { Peer } from './peer.ts';

export const PEERS: readonly Peer[] = [...[FLOODGATE, NGINX_LUA, NGINX_LIMIT_REQ, CADDY_PLAIN, FASTIFY_RLF]];
