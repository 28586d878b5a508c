/** NGINX as a proxy. Each NGINX peer adds its limits to this configuration. */
import { join } from 'node:path';
import type { Started } from '#test/support/process.ts';
import type { Launch, Place } from './peer.ts';

export interface Parts {
  /** Directives at the beginning of the file, which load modules. */
  readonly modules?: string;
  readonly http?: string;
  readonly server: string;
}

export function startNginx(name: string, place: Place, parts: Parts): Promise<Started> {
  const { processes, port, upstreamPort } = place;
  const home = join(processes.folder, `${name}-${port}`);
  // It must run as this user, because it writes large bodies to the folder of the bench.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const file = processes.file(
    `${name}-${port}.conf`,
    `${parts.modules ?? ''}
${user} daemon off; master_process off; pid ${home}.pid; error_log stderr crit;
events { worker_connections 4096; }
http {
  access_log off; server_tokens off; default_type application/json;
  client_body_temp_path ${home}-bodies; proxy_temp_path ${home}-proxy;
  upstream upstream_server { server 127.0.0.1:${upstreamPort}; keepalive 256; keepalive_requests 1000000000; }
  ${parts.http ?? ''}
  server { listen 127.0.0.1:${port} backlog=1024 reuseport; ${parts.server} }
}
`,
  );
  return processes.start(['nginx', '-c', file], port);
}

/** @param limits directives for paths that have limits */
export function startNginxProxy(
  name: string,
  launch: Launch,
  { limits, http, modules = '' }: Omit<Parts, 'server'> & { readonly limits: string },
): Promise<Started> {
  const forward = `proxy_pass http://upstream_server; proxy_http_version 1.1; proxy_set_header Connection "";
    proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $http_host;
    proxy_request_buffering off;`;
  return startNginx(name, launch, {
    modules,
    http: `keepalive_requests 1000000000; keepalive_timeout 600s; client_max_body_size 16m;
  map $http_x_api_key $limit_key { "" $binary_remote_addr; default $http_x_api_key; }
  ${http}`,
    server: `location /api/ { ${limits} ${forward} } location / { ${forward} }`,
  });
}
