/** Finds the programs that the bench starts, and says which command installs those that are missing. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { UsageError } from '#bench/command.ts';

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
  caddy: 'caddy',
  'libnginx-mod-http-lua': `${NGINX_MODULES}/ngx_http_lua_module.so`,
  'lua-resty-core': '/usr/share/lua/5.1/resty/core.lua',
  'lua-nginx-redis': '/usr/share/lua/5.1/nginx/redis.lua',
} as const;

/** Programs without a Debian package. */
const OTHERS = {
  npm: {
    isThere: () => existsSync(join(NODE_PEERS, 'node_modules')),
    install: 'npm ci --prefix bench/peers/node',
  },
  'caddy-ratelimit': {
    isThere: () => lines('caddy', 'list-modules').includes('http.handlers.rate_limit'),
    install:
      'xcaddy build --with github.com/mholt/caddy-ratelimit, and put the new caddy first on PATH (Debian’s has no rate limit)',
  },
  traefik: {
    isThere: () => find('traefik') !== null,
    install: 'copy the program traefik (version 3) to a folder of PATH; Debian has no package of it',
  },
} as const;

export type Package = keyof typeof PACKAGES | keyof typeof OTHERS;

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

export function path(program: string): string {
  const found = find(program);
  if (found === null) throw new UsageError(`${program} is not installed`);
  return found;
}

/** @returns how to install what is missing (on Debian or Ubuntu), or null */
export function missing(packages: readonly Package[]): string | null {
  const debian: string[] = [];
  for (const name of packages) {
    if (!(name in PACKAGES)) {
      const { isThere, install } = OTHERS[name as keyof typeof OTHERS];
      if (!isThere()) return `not installed; to install it: ${install}`;
      continue;
    }
    const place = PACKAGES[name as keyof typeof PACKAGES];
    if (!(place.startsWith('/') ? existsSync(place) : find(place) !== null)) debian.push(name);
  }
  return debian.length === 0 ? null : `not installed; to install it: apt-get install ${debian.join(' ')}`;
}

/** The numbers of a version; "not installed" without the program. */
export function version(program: string, flag: string): string {
  return /\d+(?:\.\d+)+/.exec(lines(program, flag).join('\n'))?.[0] ?? 'not installed';
}

/** The output of a program that ends by itself; none if it is not installed. */
function lines(program: string, ...args: readonly string[]): readonly string[] {
  const found = find(program);
  if (found === null) return [];
  const { stdout, stderr } = spawnSync(found, args, { encoding: 'utf8' });
  return `${stdout}${stderr}`.trim().split('\n');
}
