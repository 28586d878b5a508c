/**
 * HAProxy with a stick table. It counts in its own memory, in windows that slide, and shares nothing between machines.
 * A refused request is counted too.
 */
import { type Peer, WINDOW_SECONDS } from './peer.ts';

export const HAPROXY: Peer = {
  name: 'haproxy',
  label: 'HAProxy stick tables',
  needs: ['haproxy'],
  start({ processes, port, upstreamPort, limit }) {
    const file = processes.file(
      `haproxy-${port}.cfg`,
      `global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  http-reuse always
  option forwardfor
listen proxy
  bind 127.0.0.1:${port} backlog 1024
  stick-table type string len 64 size 1m expire ${WINDOW_SECONDS}s store http_req_rate(${WINDOW_SECONDS}s)
  acl limited path_beg /api/
  http-request set-var(txn.key) src if limited
  http-request set-var(txn.key) req.hdr(x-api-key) if limited { req.hdr(x-api-key) -m found }
  http-request track-sc0 var(txn.key) if limited
  http-request return status 429 content-type application/json string '{"error":"too many requests"}' hdr Retry-After ${WINDOW_SECONDS} hdr X-RateLimit-Limit ${limit} hdr X-RateLimit-Remaining 0 hdr X-RateLimit-Reset ${WINDOW_SECONDS} if limited { sc_http_req_rate(0) gt ${limit} }
  http-request set-header X-Forwarded-Proto http
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  http-response set-header X-RateLimit-Limit ${limit} if { sc_tracked(0) }
  http-response set-header X-RateLimit-Remaining %[sc_http_req_rate(0),neg,add(${limit})] if { sc_tracked(0) }
  http-response set-header X-RateLimit-Reset ${WINDOW_SECONDS} if { sc_tracked(0) }
  server one 127.0.0.1:${upstreamPort}
`,
    );
    return processes.start(['haproxy', '-db', '-f', file], port);
  },
};
