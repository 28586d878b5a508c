/**
 * The upstream of all peers. It must never be the bottleneck, so it is NGINX with fixed replies. With `return`, NGINX
 * replies before it has read the body. So routes with bodies pass through a second server block, which reads them.
 */
import { startNginx } from '#bench/peers/nginx.ts';
import type { Processes } from '#bench/run/processes.ts';
import { freePort } from '#test/support/ports.ts';

const BODY = '{"data":{"id":"bench","name":"an answer of about seventy-five bytes"}}';

/** @returns its port */
export async function startUpstream(processes: Processes): Promise<number> {
  const [port, inner] = [await freePort(), await freePort()];
  await startNginx(
    'upstream',
    { processes, port, upstreamPort: inner },
    {
      http: `keepalive_requests 1000000000; keepalive_timeout 600s; client_max_body_size 16m; client_body_buffer_size 2m;
  server { listen 127.0.0.1:${inner} backlog=1024; location / { return 200 '${BODY}'; } }`,
      server: `location / { return 200 '${BODY}'; }
    location ~ /(responses|storage)$ {
      proxy_pass http://upstream_server; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_pass_request_body off; proxy_set_header Content-Length "";
    }`,
    },
  );
  return port;
}
