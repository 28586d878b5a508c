/**
 * The upstream of all peers, which must never be the bottleneck. NGINX answers `return` before it has read the body, so
 * routes that take bodies go through a second server, which reads them.
 */
import { startEcho } from '#bench/peers/echo.ts';
import { startNginx } from '#bench/peers/nginx.ts';
import type { Processes, Started } from '#bench/run/processes.ts';
import { find } from '#bench/run/programs.ts';
import { freePort } from '#test/support/ports.ts';

const BODY = '{"data":{"id":"bench","name":"an answer of about seventy-five bytes"}}';

export async function startUpstream(processes: Processes, port: number): Promise<Started> {
  if (find('nginx') === null) return startEcho(processes, { port, workers: 1, body: BODY });
  const inner = await freePort();
  const place = { processes, port, upstreamPort: inner };
  return startNginx('upstream', place, {
    workers: 1,
    http: `keepalive_requests 1000000000; keepalive_timeout 600s; client_max_body_size 16m; client_body_buffer_size 2m;
  server { listen 127.0.0.1:${inner} backlog=1024; location / { return 200 '${BODY}'; } }`,
    server: `location / { return 200 '${BODY}'; }
    location ~ /(responses|storage)$ {
      proxy_pass http://upstream_server; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_pass_request_body off; proxy_set_header Content-Length "";
    }`,
  });
}
