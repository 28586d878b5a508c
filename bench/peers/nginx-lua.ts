/**
 * NGINX with Lua. It counts fixed windows in Redis, for all machines together. This is the usual recipe: one pipeline
 * with INCR and EXPIRE for each limit, sent with the client lua-resty-redis (in Debian: lua-nginx-redis) on kept-alive
 * connections. It sends the same limit headers as the other peers. If Redis fails, it lets all requests through.
 */
import { NGINX_MODULES } from '#bench/run/programs.ts';
import { startNginxProxy } from './nginx.ts';
import { type Launch, type Peer, WINDOW_SECONDS } from './peer.ts';

export const NGINX_LUA: Peer = {
  name: 'nginx-lua',
  label: 'NGINX + Lua + Redis',
  needs: ['nginx', 'libnginx-mod-http-lua', 'lua-resty-core', 'lua-nginx-redis', 'redis-server'],
  countsInRedis: true,
  start: (launch) =>
    startNginxProxy('nginx-lua', launch, {
      modules: ['ndk_http', 'ngx_http_lua']
        .map((name) => `load_module ${NGINX_MODULES}/${name}_module.so;`)
        .join('\n'),
      http: 'lua_package_path "/usr/share/lua/5.1/?.lua;;";',
      limits: `access_by_lua_block { ${lua(launch)} }`,
    }),
};

function lua({ limit, limits, redisPort }: Launch): string {
  const keys = Array.from({ length: limits }, (_, i) => `"rl${i}:" .. who .. window`);
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
      local limit, most = ${limit}, 0
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
