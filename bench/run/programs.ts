/** Finds the programs that the bench starts, and says which command installs those that are missing. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CommandError, EXIT } from '#shared/cli/exit.ts';

export const BENCH = join(import.meta.dirname, '..');
export const ROOT = join(BENCH, '..');
export const NGINX_MODULES = '/usr/share/nginx/modules';
/** Includes the sbin folders, because servers are installed there and PATH often lacks them. */
export const PATH = [process.env.PATH, '/usr/local/sbin', '/usr/sbin', '/sbin'].join(delimiter);

/** Debian's packages, each with a file of it. A program is looked for in PATH. */
const FILES = {
  wrk: 'wrk',
  'redis-server': 'redis-server',
  nginx: 'nginx',
  caddy: 'caddy',
  haproxy: 'haproxy',
  'libnginx-mod-http-lua': `${NGINX_MODULES}/ngx_http_lua_module.so`,
  'lua-resty-core': '/usr/share/lua/5.1/resty/core.lua',
  'lua-nginx-redis': '/usr/share/lua/5.1/nginx/redis.lua',
} as const;

export type Package = keyof typeof FILES;

/** @throws CommandError with the command that installs the missing packages on Debian or Ubuntu */
export function assertInstalled(packages: readonly Package[]): void {
  const absent = packages.filter((name) => {
    const file = FILES[name];
    return file.startsWith('/')
      ? !existsSync(file)
      : !PATH.split(delimiter).some((folder) => existsSync(join(folder, file)));
  });
  if (absent.length === 0) return;
  const names = absent.join(' ');
  throw new CommandError(`${names} not installed; to install it: apt-get install ${names}`, EXIT.usage);
}
