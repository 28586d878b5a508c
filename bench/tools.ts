/** Programs that come from the system: found on PATH, or installed from Debian's packages where that is possible. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const BENCH = dirname(fileURLToPath(import.meta.url));
export const ROOT = dirname(BENCH);
/** The Node that the project pins, for the gateway and for its peers alike. */
export const NODE = process.execPath;
const LUA_MODULE = '/usr/share/nginx/modules/ngx_http_lua_module.so';
const LUA_REDIS = '/usr/share/lua/5.1/nginx/redis.lua';
const NDK_MODULE = '/usr/share/nginx/modules/ndk_http_module.so';

/** Servers live in sbin, which is not on everybody's PATH. */
const PLACES = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin', '/sbin'];

export function find(program: string): string | null {
  for (const place of PLACES) {
    try {
      const path = join(place, program);
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not here; the next place, or none.
    }
  }
  return null;
}

/** @throws when a caller did not ask `missing` first */
export function path(program: string): string {
  const found = find(program);
  if (found === null) throw new Error(`${program} is not installed`);
  return found;
}

export function missing(program: string, debianPackage: string): string | null {
  return find(program) === null ? `install ${debianPackage} (apt-get install ${debianPackage})` : null;
}

export function missingLua(): string | null {
  const isThere = find('nginx') !== null && [LUA_MODULE, NDK_MODULE, LUA_REDIS].every(existsSync);
  return isThere
    ? null
    : 'install nginx with Lua (apt-get install nginx libnginx-mod-http-lua lua-resty-core lua-nginx-redis)';
}

export const LUA_MODULES = `load_module ${NDK_MODULE};\nload_module ${LUA_MODULE};`;

const DEBIAN: readonly (readonly [debianPackage: string, isMissing: () => boolean])[] = [
  ['wrk', () => find('wrk') === null],
  ['redis-server', () => find('redis-server') === null],
  ['nginx', () => find('nginx') === null],
  ['libnginx-mod-http-lua', () => !existsSync(LUA_MODULE)],
  ['lua-resty-core', () => !existsSync('/usr/share/lua/5.1/resty/core.lua')],
  ['lua-nginx-redis', () => !existsSync(LUA_REDIS)],
  ['haproxy', () => find('haproxy') === null],
];

/** Installs from Debian's packages what is missing, as root on Debian; says what it does. */
export function installPrograms(say: (line: string) => void): void {
  const wanted = DEBIAN.filter(([, isMissing]) => isMissing()).map(([name]) => name);
  if (wanted.length === 0 || process.getuid?.() !== 0 || find('apt-get') === null) return;
  say(`installing ${wanted.join(' ')} from Debian's packages (--no-install leaves them out)`);
  const run = spawnSync('apt-get', ['install', '-y', '--no-install-recommends', ...wanted], {
    encoding: 'utf8',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  if (run.status !== 0)
    say(`apt-get failed, going on without: ${run.stderr.trim().split('\n').at(-1) ?? ''}`);
}

const PEERS = join(BENCH, 'peers');

export function missingNpmPeers(): string | null {
  return existsSync(join(PEERS, 'node_modules', 'express')) ? null : 'run npm ci in bench/peers';
}

/** Installs the peers that are npm packages, as locked, into their own folder. */
export function installNpmPeers(say: (line: string) => void): void {
  if (missingNpmPeers() === null) return;
  say('installing the peers that are npm packages into bench/peers (--no-install leaves them out)');
  const run = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: PEERS,
    encoding: 'utf8',
  });
  if (run.status !== 0) say(`npm ci failed, going on without: ${run.stderr.trim().split('\n').at(-1) ?? ''}`);
}

export function version(program: string, flag: string): string {
  const found = find(program);
  if (found === null) return 'not installed';
  const { stdout, stderr } = spawnSync(found, [flag], { encoding: 'utf8' });
  return `${stdout}${stderr}`.trim().split('\n')[0] ?? '';
}
