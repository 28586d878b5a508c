/** HAProxy with a stick table of connections and request rates by address, a queue before the upstream, and time limits of 10 s. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { missing, path } from '../../tools.ts';
import { ATTACKER_ADDRESS } from '../addresses.ts';
import { type AbuseTarget, BURST, CONNECTIONS_PER_ADDRESS, REQUESTS_PER_SECOND } from './target.ts';

const RATE_SECONDS = 10;

export const HAPROXY: AbuseTarget = {
  name: 'haproxy',
  label: 'HAProxy',
  usesRedis: false,
  stopSignal: 'SIGTERM',
  missing: () => missing('haproxy', 'haproxy'),
  start({ processes, scenario, port, upstreamPort }) {
    const file = join(processes.directory, `haproxy-${port}.cfg`);
    const forwarded =
      scenario.trustsAttacker === true
        ? `http-request set-src req.hdr_ip(x-forwarded-for,-1) if { src ${ATTACKER_ADDRESS} }\n  `
        : '';
    writeFileSync(
      file,
      `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 3s
  timeout client 10s
  timeout client-fin 5s
  timeout server 30s
  timeout queue 5s
  timeout tunnel 1h
  timeout http-request 10s
  timeout http-keep-alive 30s
  option forwardfor
  option http-server-close
  http-reuse safe
frontend public
  bind 127.0.0.1:${port} backlog 1024
  tcp-request connection track-sc0 src table clients
  tcp-request connection reject if { sc_conn_cur(0) gt ${CONNECTIONS_PER_ADDRESS} }
  ${forwarded}http-request track-sc1 src table requests
  http-request deny deny_status 429 if { sc_http_req_rate(1) gt ${REQUESTS_PER_SECOND * RATE_SECONDS + BURST} }
  default_backend upstream
backend upstream
  server one 127.0.0.1:${upstreamPort} maxconn 256
backend clients
  stick-table type ipv6 size 100k expire 60s store conn_cur
backend requests
  stick-table type ipv6 size 100k expire 60s store http_req_rate(${RATE_SECONDS}s)
`,
    );
    return processes.start('haproxy', path('haproxy'), ['-db', '-f', file], { port });
  },
};
