/**
 * NGINX with `limit_req`. It counts in its own memory, with leaky buckets instead of windows. It shares nothing between
 * machines.
 */
import type { Started } from '#bench/run/processes.ts';
import { startNginx, startNginxProxy } from './nginx.ts';
import { BOUNDS, type BoundedPlace, HIGH_LIMIT, type Peer } from './peer.ts';

export const NGINX_LIMIT_REQ: Peer = {
  name: 'nginx-limit-req',
  label: 'NGINX limit_req',
  needs: ['nginx'],
  start(launch) {
    const isHigh = launch.limit === HIGH_LIMIT;
    const rate = isHigh ? '1000000r/s' : `${launch.limit}r/m`;
    return startNginxProxy('nginx-limit-req', launch, {
      http: `limit_req_zone $limit_key zone=requests:64m rate=${rate}; limit_req_status 429;`,
      limits: `limit_req zone=requests burst=${isHigh ? 1_000_000 : launch.limit} nodelay;`,
    });
  },
};

/** Starts NGINX with `limit_req`, `limit_conn`, its usual buffering, and time limits of 10 s. */
export function startBoundedNginx(place: BoundedPlace): Promise<Started> {
  const { requestsPerSecond, burst, connections } = BOUNDS;
  const realIp =
    place.trusted === null
      ? ''
      : `set_real_ip_from ${place.trusted}; real_ip_header X-Forwarded-For; real_ip_recursive on;`;
  return startNginx('nginx', place, {
    // By default, NGINX writes up to 1 GB of each download to the disk.
    http: `${realIp} proxy_max_temp_file_size 2m;
  client_header_timeout 10s; client_body_timeout 10s; send_timeout 10s; keepalive_timeout 30s;
  reset_timedout_connection on; client_max_body_size 32m; client_body_buffer_size 128k; large_client_header_buffers 4 16k;
  limit_req_zone $binary_remote_addr zone=requests:10m rate=${requestsPerSecond}r/s; limit_req_status 429;
  limit_conn_zone $binary_remote_addr zone=connections:10m; limit_conn_status 429;
  map $http_upgrade $connection_upgrade { default upgrade; "" ""; }`,
    server: `limit_req zone=requests burst=${burst} nodelay; limit_conn connections ${connections};
    location / {
      proxy_pass http://upstream_server; proxy_http_version 1.1; proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_read_timeout 30s;
    }`,
  });
}
