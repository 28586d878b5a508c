/** Finds the programs that the bench starts, and says which command installs those that are missing. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { UsageError } from '#bench/command.ts';

export const BENCH = join(import.meta.dirname, '..');
export const ROOT = join(BENCH, '..');
export const NGINX_MODULES = '/usr/share/nginx/modules';
/** Includes the sbin folders, because servers are installed there and PATH often lacks them. */
export const PATH = [process.env.PATH, '/usr/local/sbin', '/usr/sbin', '/sbin'].join(delimiter);

interface Installation {
  readonly isThere: () => boolean;
  readonly install: string;
}

/** @param file a file that the package installs; default: the program with the name of the package */
function debian(name: string, file?: string): Installation {
  return {
    isThere: () => (file === undefined ? find(name) !== null : existsSync(file)),
    install: `apt-get install ${name}`,
  };
}

const INSTALLATIONS = {
  wrk: debian('wrk'),
  'redis-server': debian('redis-server'),
  nginx: debian('nginx'),
  caddy: debian('caddy'),
  'libnginx-mod-http-lua': debian('libnginx-mod-http-lua', `${NGINX_MODULES}/ngx_http_lua_module.so`),
  'lua-resty-core': debian('lua-resty-core', '/usr/share/lua/5.1/resty/core.lua'),
  'lua-nginx-redis': debian('lua-nginx-redis', '/usr/share/lua/5.1/nginx/redis.lua'),
} as const satisfies Record<string, Installation>;

export type Package = keyof typeof INSTALLATIONS;

export function find(program: string): string | null {
  const places = PATH.split(delimiter).map((folder) => join(folder, program));
  return places.find((place) => existsSync(place)) ?? null;
}

/** @throws UsageError with the commands that install the missing packages on Debian or Ubuntu */
export function assertInstalled(packages: readonly Package[]): void {
  const absent = packages.filter((name) => !INSTALLATIONS[name].isThere());
  if (absent.length === 0) return;
  const commands = absent.map((name) => INSTALLATIONS[name].install).join(' && ');
  throw new UsageError(`${absent.join(', ')} not installed; to install it: ${commands}`);
}

/** Returns the version number of a program, or "not installed". */
export function version(program: string, flag: string): string {
  return /\d+(?:\.\d+)+/.exec(outputOf(program, flag))?.[0] ?? 'not installed';
}

/** Runs a program and returns its output. */
function outputOf(program: string, ...args: readonly string[]): string {
  const { stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', env: { ...process.env, PATH } });
  return `${stdout}${stderr}`;
}
