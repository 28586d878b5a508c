/**
 * HAProxy with stick tables. It counts in its own memory, as a sliding rate that includes denied requests. It shares
 * nothing between machines.
 */
import type { Started } from '#bench/run/processes.ts';
import { BOUNDS, type BoundedPlace, type Launch, type Peer, type Place, WINDOW_SECONDS } from './peer.ts';

interface Parts {
  readonly defaults: string;
  readonly frontend: string;
  /** Options of the `server` line of the upstream. */
  readonly server: string;
  readonly tables: string;
}

function startHaproxy({ processes, port, upstreamPort }: Place, parts: Parts): Promise<Started> {
  const file = processes.file(
    `haproxy-${port}.cfg`,
    `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 3s
  option forwardfor
  ${parts.defaults}
frontend public
  bind 127.0.0.1:${port} backlog 1024
  ${parts.frontend}
  default_backend upstream
backend upstream
  server one 127.0.0.1:${upstreamPort} ${parts.server}
${parts.tables}
`,
  );
  return processes.start('haproxy', 'haproxy', ['-db', '-f', file], { port });
}

function start(launch: Launch): Promise<Started> {
  const { limit } = launch;
  const tables = Array.from({ length: launch.limits }, (_, i) => i);
  const track = tables.map(
    (i) => `http-request track-sc${i} req.hdr(x-api-key) table limits${i} if limited has_key
  http-request track-sc${i} src,ipmask(32) table limits${i} if limited !has_key
  http-request deny deny_status 429 hdr Retry-After ${WINDOW_SECONDS} if limited { sc_http_req_rate(${i}) gt ${limit} }`,
  );
  const table = `type string len 64 size 400k expire ${WINDOW_SECONDS}s store http_req_rate(${WINDOW_SECONDS}s)`;
  return startHaproxy(launch, {
    defaults: `timeout client 60s
  timeout server 60s
  timeout http-keep-alive 60s
  http-reuse always`,
    frontend: `acl limited path_beg /api/
  acl has_key req.hdr(x-api-key) -m found
  ${track.join('\n  ')}
  http-request set-header X-Forwarded-Proto http
  http-request set-header X-Forwarded-Host %[req.hdr(host)]`,
    server: 'pool-max-conn 256',
    tables: tables.map((i) => `backend limits${i}\n  stick-table ${table}`).join('\n'),
  });
}

export const HAPROXY: Peer = {
  name: 'haproxy',
  label: 'HAProxy stick table',
  needs: ['haproxy'],
  start,
};

/**
 * Starts HAProxy with limits on the connections and requests of one address, a queue before the upstream, and time
 * limits of 10 s.
 */
export function startBoundedHaproxy(place: BoundedPlace): Promise<Started> {
  const { requestsPerSecond, burst, connections } = BOUNDS;
  const forwarded =
    place.trusted === null
      ? ''
      : `http-request set-src req.hdr_ip(x-forwarded-for,-1) if { src ${place.trusted} }`;
  return startHaproxy(place, {
    defaults: `timeout client 10s
  timeout client-fin 5s
  timeout server 30s
  timeout queue 5s
  timeout tunnel 1h
  timeout http-request 10s
  timeout http-keep-alive 30s
  option http-server-close
  http-reuse safe`,
    frontend: `tcp-request connection track-sc0 src table clients
  tcp-request connection reject if { sc_conn_cur(0) gt ${connections} }
  ${forwarded}
  http-request track-sc1 src table requests
  http-request deny deny_status 429 if { sc_http_req_rate(1) gt ${requestsPerSecond * 10 + burst} }`,
    server: 'maxconn 256',
    tables: `backend clients
  stick-table type ipv6 size 100k expire 60s store conn_cur
backend requests
  stick-table type ipv6 size 100k expire 60s store http_req_rate(10s)`,
  });
}
