/** NGINX with limit_req, limit_conn, its usual buffering, and time limits of 10 s. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { missing, path } from '../../tools.ts';
import { ATTACKER_ADDRESS } from '../addresses.ts';
import { type AbuseTarget, BURST, CONNECTIONS_PER_ADDRESS, REQUESTS_PER_SECOND } from './target.ts';

export const NGINX: AbuseTarget = {
  name: 'nginx',
  label: 'NGINX',
  usesRedis: false,
  stopSignal: 'SIGTERM',
  missing: () => missing('nginx', 'nginx'),
  start({ processes, scenario, port, upstreamPort }) {
    const home = join(processes.directory, `nginx-${port}`);
    const realIp =
      scenario.trustsAttacker === true
        ? `set_real_ip_from ${ATTACKER_ADDRESS}; real_ip_header X-Forwarded-For; real_ip_recursive on;`
        : '';
    // Its workers keep bodies in our folder.
    const user = process.getuid?.() === 0 ? 'user root; ' : '';
    writeFileSync(
      `${home}.conf`,
      `${user}daemon off; worker_processes 1; pid ${home}.pid; error_log stderr crit;
events { worker_connections 4096; }
http {
  access_log off; server_tokens off; ${realIp}
  client_header_timeout 10s; client_body_timeout 10s; send_timeout 10s; keepalive_timeout 30s;
  reset_timedout_connection on; client_max_body_size 32m; client_body_buffer_size 128k; large_client_header_buffers 4 16k;
  client_body_temp_path ${home}-bodies; proxy_temp_path ${home}-proxy;
  # By default 1 GB a download: the disk of the bench is spared.
  proxy_max_temp_file_size 2m;
  limit_req_zone $binary_remote_addr zone=requests:10m rate=${REQUESTS_PER_SECOND}r/s; limit_req_status 429;
  limit_conn_zone $binary_remote_addr zone=connections:10m; limit_conn_status 429;
  map $http_upgrade $connection_upgrade { default upgrade; "" ""; }
  upstream upstream_server { server 127.0.0.1:${upstreamPort}; keepalive 256; }
  server {
    listen 127.0.0.1:${port} backlog=1024;
    limit_req zone=requests burst=${BURST} nodelay;
    limit_conn connections ${CONNECTIONS_PER_ADDRESS};
    location / {
      proxy_pass http://upstream_server; proxy_http_version 1.1; proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_read_timeout 30s;
    }
  }
}
`,
    );
    return processes.start('nginx', path('nginx'), ['-c', `${home}.conf`], { port });
  },
};
