/**
 * NGINX with `limit_req`. It counts in its own memory, with leaky buckets instead of windows. It shares nothing between
 * machines.
 */
import { startNginxProxy } from './nginx.ts';
import { HIGH_LIMIT, type Peer } from './peer.ts';

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
