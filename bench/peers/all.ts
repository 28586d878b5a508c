/** All peers, in the order of the report. */
import { CADDY_PLAIN } from './caddy.ts';
import { FASTIFY_RLF } from './fastify-rlf.ts';
import { FLOODGATE, FLOODGATE_BARE, FLOODGATE_UNIX } from './floodgate.ts';
import { NGINX } from './nginx.ts';
import { NGINX_LIMIT_REQ } from './nginx-limit-req.ts';
import { NGINX_LUA } from './nginx-lua.ts';
import { DIRECT, type Peer } from './peer.ts';

export const PEERS: readonly Peer[] = [
  ...[FLOODGATE, FLOODGATE_UNIX, FLOODGATE_BARE, NGINX_LUA, NGINX_LIMIT_REQ],
  ...[NGINX, CADDY_PLAIN, FASTIFY_RLF, DIRECT],
];
