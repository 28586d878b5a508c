/**
 * The upstream of all peers, which must never be the bottleneck. NGINX answers `return` before it has read the body, so
 * routes that take bodies go through a second server, which reads them.
 */
import { join } from 'node:path';
import { startNginx } from '#bench/peers/nginx.ts';
import type { Processes, Started } from '#bench/run/processes.ts';
import { BENCH, find } from '#bench/run/programs.ts';
import { freePort } from '#test/support/ports.ts';

const BODY = '{"data":{"id":"bench","name":"an answer of about seventy-five bytes"}}';

export async function startUpstream(processes: Processes, port: number): Promise<Started> {
  if (find('nginx') === null) return startEcho(processes, { port, body: BODY });
  const inner = await freePort();
  return startNginx(
    'upstream',
    { processes, port, upstreamPort: inner },
    {
      workers: 1,
      http: `keepalive_requests 1000000000; keepalive_timeout 600s; client_max_body_size 16m; client_body_buffer_size 2m;
  server { listen 127.0.0.1:${inner} backlog=1024; location / { return 200 '${BODY}'; } }`,
      server: `location / { return 200 '${BODY}'; }
    location ~ /(responses|storage)$ {
      proxy_pass http://upstream_server; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_pass_request_body off; proxy_set_header Content-Length "";
    }`,
    },
  );
}

/** Starts a plain `node:http` server: the least that a reply can cost on Node. */
export function startEcho(
  processes: Processes,
  {
    port,
    workers = 1,
    body = '{}',
  }: { readonly port: number; readonly workers?: number; readonly body?: string },
): Promise<Started> {
  const args = [join(BENCH, 'run', 'echo.ts'), String(port), String(workers), body];
  return processes.node('the echo', args, { readyText: 'ready' });
}
