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
 * INCR of a key per window, EXPIRE when it is new: the usual recipe, spoken over a kept-alive cosocket as
 * lua-resty-redis does, several limits in one pipeline. Redis down: let through. It writes no limit headers.
 */
function lua({ scenario, redisPort }: Launch): string {
  const keys = Array.from({ length: Math.max(1, scenario.limits) }, (_, i) => `"rl${i}:" .. who .. window`);
  return `
      local who = ngx.var.http_x_api_key or ngx.var.binary_remote_addr
      local window = ":" .. math.floor(ngx.now() / ${WINDOW_SECONDS})
      local keys = { ${keys.join(', ')} }
      local socket = ngx.socket.tcp()
      socket:settimeouts(50, 50, 50)
      if not socket:connect("127.0.0.1", ${redisPort}) then return end
      local ask = {}
      for i, key in ipairs(keys) do
        ask[i] = "*2\\r\\n$4\\r\\nINCR\\r\\n$" .. #key .. "\\r\\n" .. key .. "\\r\\n"
      end
      if not socket:send(ask) then return end
      local over = false
      local expire = {}
      for i, key in ipairs(keys) do
        local line = socket:receive()
        if not line then socket:close() return end
        local count = tonumber(line:sub(2))
        if count == 1 then
          expire[#expire + 1] = "*3\\r\\n$6\\r\\nEXPIRE\\r\\n$" .. #key .. "\\r\\n" .. key .. "\\r\\n$2\\r\\n${WINDOW_SECONDS}\\r\\n"
        end
        if count > ${limitOf(scenario)} then over = true end
      end
      if #expire > 0 then
        socket:send(expire)
        for _ = 1, #expire do socket:receive() end
      end
      socket:setkeepalive(60000, 256)
      if over then
        ngx.status = 429
        ngx.header["Retry-After"] = ${WINDOW_SECONDS}
        ngx.header["Content-Type"] = "application/json"
        ngx.print('{"error":"too many requests"}')
        return ngx.exit(429)
      end
    `;
}
