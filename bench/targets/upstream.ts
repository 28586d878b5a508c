/**
 * What stands behind every target: as cheap as can be, so that it never is the bottleneck. Its second server exists
 * because NGINX answers `return` without reading the body first; routes that take bodies go through it, read whole.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '#test/support/ports.ts';
import type { Processes, Started } from '../processes.ts';
import { BENCH, find, NODE } from '../tools.ts';

export const UPSTREAM_BODY = '{"data":{"id":"bench","name":"an answer of about seventy-five bytes"}}';

export async function startUpstream(processes: Processes, port: number): Promise<Started> {
  const nginx = find('nginx');
  if (nginx === null) {
    const args = [join(BENCH, 'peers', 'upstream.mjs'), String(port), UPSTREAM_BODY];
    return processes.start('upstream', NODE, args, { port });
  }
  const file = join(processes.directory, 'upstream.conf');
  const inner = await freePort();
  writeFileSync(
    file,
    `daemon off; worker_processes 1; pid ${processes.directory}/upstream.pid; error_log stderr crit;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; default_type application/json;
  client_max_body_size 16m; client_body_buffer_size 2m; client_body_temp_path ${processes.directory}/upstream-bodies;
  proxy_temp_path ${processes.directory}/upstream-proxy;
  upstream inner { server 127.0.0.1:${inner}; keepalive 256; keepalive_requests 1000000000; }
  server { listen 127.0.0.1:${inner} backlog=1024; location / { return 200 '${UPSTREAM_BODY}'; } }
  server {
    listen 127.0.0.1:${port} backlog=1024;
    location / { return 200 '${UPSTREAM_BODY}'; }
    location ~ /(responses|storage)$ {
      proxy_pass http://inner; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_pass_request_body off; proxy_set_header Content-Length "";
    }
  }
}
`,
  );
  return processes.start('upstream', nginx, ['-c', file], { port });
}
