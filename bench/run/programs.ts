/** Finds the programs that the bench starts, and says which command installs those that are missing. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export const BENCH = join(import.meta.dirname, '..');
export const ROOT = join(BENCH, '..');
const NODE_PEERS = join(BENCH, 'peers', 'node');

export const NGINX_MODULES = '/usr/share/nginx/modules';
/** Debian package -> a program or a file of it. */
const PACKAGES = {
  wrk: 'wrk',
  'redis-server': 'redis-server',
  nginx: 'nginx',
  haproxy: 'haproxy',
  'libnginx-mod-http-lua': `${NGINX_MODULES}/ngx_http_lua_module.so`,
  'lua-resty-core': '/usr/share/lua/5.1/resty/core.lua',
  'lua-nginx-redis': '/usr/share/lua/5.1/nginx/redis.lua',
} as const;

export type Package = keyof typeof PACKAGES | 'npm';

/** Servers are in sbin, which is often not on PATH. */
const PLACES = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin', '/sbin'];

export function find(program: string): string | null {
  const paths = program.startsWith('/') ? [program] : PLACES.map((place) => join(place, program));
  return paths.find(isProgram) ?? null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export class MissingProgram extends Error {}

export function path(program: string): string {
  const found = find(program);
  if (found === null) throw new MissingProgram(`${program} is not installed`);
  return found;
}

/** @returns the command that installs what is missing (on Debian or Ubuntu), or null */
export function missing(packages: readonly Package[]): string | null {
  const wanted = packages.filter((name) => !isThere(name));
  if (wanted.includes('npm')) return 'install it with: npm ci --prefix bench/peers/node';
  return wanted.length === 0 ? null : `install it with: apt-get install ${wanted.join(' ')}`;
}

function isThere(name: Package): boolean {
  if (name === 'npm') return existsSync(join(NODE_PEERS, 'node_modules'));
  const place = PACKAGES[name];
  return place.startsWith('/') ? existsSync(place) : find(place) !== null;
}

export function version(program: string, flag: string): string {
  const found = find(program);
  if (found === null) return 'not installed';
  const { stdout, stderr } = spawnSync(found, [flag], { encoding: 'utf8' });
  return `${stdout}${stderr}`.trim().split('\n')[0] ?? '';
}
