/** NGINX three times: as a plain proxy, with limit_req in its memory, and with Lua counting in Redis. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Started } from '../processes.ts';
import { LOW_LIMIT, limitOf, WINDOW_SECONDS } from '../scenarios.ts';
import { LUA_MODULES, missing, missingLua, path } from '../tools.ts';
import type { Launch, Peer } from './target.ts';

interface Parts {
  readonly modules?: string;
  /** In `http`. */
  readonly zones?: string;
  /** In every location that has limits. */
  readonly limits?: string;
}

function start(name: string, launch: Launch, parts: Parts): Promise<Started> {
  const { processes, port, upstreamPort, directory, scenario } = launch;
  const home = join(directory, `${name}-${port}`);
  const file = `${home}.conf`;
  const forward = `proxy_pass http://upstream_server; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $http_host;
      proxy_request_buffering off;`;
  writeFileSync(
    file,
    `${parts.modules ?? ''}
daemon off; worker_processes ${scenario.workers}; pid ${home}.pid; error_log stderr crit;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; server_tokens off;
  client_max_body_size 16m; client_body_temp_path ${home}-bodies; proxy_temp_path ${home}-proxy;
  map $http_x_api_key $limit_key { "" $binary_remote_addr; default $http_x_api_key; }
  ${parts.zones ?? ''}
  upstream upstream_server {
    server 127.0.0.1:${upstreamPort}; keepalive 256; keepalive_requests 1000000000;
  }
  server {
    listen 127.0.0.1:${port} backlog=1024 reuseport;
    location /api/ { ${parts.limits ?? ''} ${forward} }
    location / { ${forward} }
  }
}
`,
  );
  return processes.start(name, path('nginx'), ['-c', file], { port });
}

export const NGINX_PLAIN: Peer = {
  name: 'nginx-plain',
  label: 'NGINX, no limit',
  usesRedis: false,
  countsInRedis: false,
  missing: () => missing('nginx', 'nginx'),
  start: (launch) => start('nginx-plain', launch, {}),
};

/** A leaky bucket of its own memory: not shared between machines, and not a window; the nearest thing NGINX has. */
export const NGINX_LIMIT_REQ: Peer = {
  name: 'nginx-limit-req',
  label: 'NGINX limit_req',
  usesRedis: false,
  countsInRedis: false,
  missing: () => missing('nginx', 'nginx'),
  start(launch) {
    const rate = launch.scenario.expect === 'allowed' ? '1000000r/s' : `${LOW_LIMIT}r/m`;
    const burst = launch.scenario.expect === 'allowed' ? 1_000_000 : LOW_LIMIT;
    return start('nginx-limit-req', launch, {
      zones: `limit_req_zone $limit_key zone=requests:64m rate=${rate}; limit_req_status 429;`,
      limits: `limit_req zone=requests burst=${burst} nodelay;`,
    });
  },
};

export const NGINX_LUA: Peer = {
  name: 'nginx-lua',
  label: 'NGINX + Lua + Redis',
  usesRedis: true,
  countsInRedis: true,
  missing: missingLua,
  start: (launch) =>
    start('nginx-lua', launch, {
      modules: LUA_MODULES,
      zones: 'lua_package_path "/usr/share/lua/5.1/?.lua;;";',
      limits: `access_by_lua_block { ${lua(launch)} }`,
    }),
};

/**
 * The usual recipe with the usual client (lua-resty-redis, which Debian calls lua-nginx-redis) on kept-alive connections:
 * INCR of a key per window and its EXPIRE in one pipeline, so that a counter can never be left without an end; several
 * limits in the same pipeline. Tells the client its limits as the other peers do. Redis down: let through.
 */
function lua({ scenario, redisPort }: Launch): string {
  const keys = Array.from({ length: Math.max(1, scenario.limits) }, (_, i) => `"rl${i}:" .. who .. window`);
  return `
      local redis = require("nginx.redis"):new()
      redis:set_timeouts(50, 50, 50)
      if not redis:connect("127.0.0.1", ${redisPort}) then return end
      local who = ngx.var.http_x_api_key or ngx.var.binary_remote_addr
      local now = ngx.time()
      local window = ":" .. math.floor(now / ${WINDOW_SECONDS})
      local keys = { ${keys.join(', ')} }
      redis:init_pipeline(#keys * 2)
      for _, key in ipairs(keys) do
        redis:incr(key)
        redis:expire(key, ${WINDOW_SECONDS})
      end
      local answers = redis:commit_pipeline()
      if not answers then return end
      redis:set_keepalive(60000, 256)
      local limit, most = ${limitOf(scenario)}, 0
      for i = 1, #keys do
        if type(answers[i * 2 - 1]) == "number" then most = math.max(most, answers[i * 2 - 1]) end
      end
      local reset = ${WINDOW_SECONDS} - now % ${WINDOW_SECONDS}
      ngx.header["X-RateLimit-Limit"] = limit
      ngx.header["X-RateLimit-Remaining"] = math.max(0, limit - most)
      ngx.header["X-RateLimit-Reset"] = reset
      if most > limit then
        ngx.status = 429
        ngx.header["Retry-After"] = reset
        ngx.header["Content-Type"] = "application/json"
        ngx.print('{"error":"too many requests"}')
        return ngx.exit(429)
      end
    `;
}
