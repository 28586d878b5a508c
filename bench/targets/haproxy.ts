/** HAProxy with stick tables in its memory: a sliding rate, not shared between machines; denied requests count too. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { limitOf, WINDOW_SECONDS } from '../scenarios.ts';
import { missing, path } from '../tools.ts';
import type { Launch, Peer } from './target.ts';

function configuration({ scenario, port, upstreamPort }: Launch): string {
  // Counters of stick tables have 32 bits, and a limit must fit in them as well.
  const limit = limitOf(scenario);
  const tables = Array.from({ length: Math.max(1, scenario.limits) }, (_, i) => i);
  const track = tables.map(
    (i) => `
  http-request track-sc${i} req.hdr(x-api-key) table limits${i} if limited has_key
  http-request track-sc${i} src,ipmask(32) table limits${i} if limited !has_key
  http-request deny deny_status 429 hdr Retry-After ${WINDOW_SECONDS} if limited { sc_http_req_rate(${i}) gt ${limit} }`,
  );
  const backends = tables.map(
    (i) =>
      `backend limits${i}\n  stick-table type string len 64 size 400k expire ${WINDOW_SECONDS}s store http_req_rate(${WINDOW_SECONDS}s)`,
  );
  return `global
  nbthread ${scenario.workers}
  maxconn 4096
defaults
  mode http
  timeout connect 3s
  timeout client 60s
  timeout server 60s
  timeout http-keep-alive 60s
  option forwardfor
  http-reuse always
frontend public
  bind 127.0.0.1:${port} backlog 1024
  acl limited path_beg /api/
  acl has_key req.hdr(x-api-key) -m found${track.join('')}
  http-request set-header X-Forwarded-Proto http
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  default_backend upstream
backend upstream
  server one 127.0.0.1:${upstreamPort} pool-max-conn 256
${backends.join('\n')}
`;
}

export const HAPROXY: Peer = {
  name: 'haproxy',
  label: 'HAProxy stick table',
  usesRedis: false,
  countsInRedis: false,
  missing: () => missing('haproxy', 'haproxy'),
  start(launch) {
    const file = join(launch.directory, `haproxy-${launch.port}.cfg`);
    writeFileSync(file, configuration(launch));
    return launch.processes.start('haproxy', path('haproxy'), ['-db', '-f', file], { port: launch.port });
  },
};
