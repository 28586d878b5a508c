/** Finds and installs the programs that tests start in addition to Node.js. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, appendFileSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { postgresFolder } from '#test/support/postgres-process.ts';
import { installFromNpm, isInstalled, isNpmProgram, NPM_PROGRAMS, type NpmProgram } from './npm-programs.ts';

/**
 * Debian package by program, or by a file of it if the program is no command. PostgreSQL's programs need not be on PATH.
 */
const PACKAGES = {
  'redis-server': 'redis-server',
  initdb: 'postgresql',
  curl: 'curl',
  openssl: 'openssl',
  nginx: 'nginx',
  caddy: 'caddy',
  haproxy: 'haproxy',
  promtool: 'prometheus',
  chromium: 'chromium',
  buildah: 'buildah',
  php: 'php-cli',
  python3: 'python3',
  'systemd-analyze': 'systemd',
  'dpkg-deb': 'dpkg',
  ruby: 'ruby-rack',
  git: 'git',
  apache2: 'apache2',
  cadaver: 'cadaver',
  rclone: 'rclone',
  restic: 'restic',
  radicale: 'radicale',
  prometheus: 'prometheus',
  go: 'golang-go',
  puma: 'puma',
  rackup: 'ruby-rack',
  '/usr/bin/python3': 'python3',
  '/usr/lib/python3/dist-packages/django/__init__.py': 'python3-django',
  '/usr/lib/python3/dist-packages/fastapi/__init__.py': 'python3-fastapi',
  uvicorn: 'uvicorn',
  wget: 'wget',
  '/usr/lib/python3/dist-packages/requests/__init__.py': 'python3-requests',
  '/usr/lib/python3/dist-packages/httpx/__init__.py': 'python3-httpx',
  '/usr/share/perl5/LWP.pm': 'libwww-perl',
  '/usr/lib/php/20220829/curl.so': 'php8.2-curl',
  '/usr/share/tomcat10/bin/catalina.sh': 'tomcat10',
  javac: 'default-jdk-headless',
} as const;

type DebianProgram = keyof typeof PACKAGES;

export type Program = DebianProgram | NpmProgram;

/** @returns the missing programs, each once */
export function missing(programs: Iterable<Program>): readonly Program[] {
  return [...new Set(programs)].filter((program) => !isThere(program));
}

/** Returns the command that installs them on Debian or Ubuntu. The runner itself installs those of npm. */
export function installCommand(programs: readonly Program[]): string {
  const debian = programs.filter(isDebian);
  return `${debian.length > 0 ? 'apt-get' : 'npm'} install ${packagesOf(debian.length > 0 ? debian : programs).join(' ')}`;
}

/** Tells whether `install` can install all of them: packages of Debian need root and apt-get. */
export function canInstall(programs: readonly Program[]): boolean {
  return !programs.some(isDebian) || (process.getuid?.() === 0 && isOnPath('apt-get'));
}

/** The caller checks afterwards what is still missing. apt-get and npm write the reason to stderr. */
export async function install(programs: readonly Program[], signal?: AbortSignal): Promise<void> {
  const packages = packagesOf(programs.filter(isDebian));
  if (packages.length > 0 && canInstall(programs)) await installFromDebian(packages, signal);
  for (const program of programs) if (isNpmProgram(program)) await installFromNpm(program, signal);
}

async function installFromDebian(packages: readonly string[], signal?: AbortSignal): Promise<void> {
  await run(['update', '-qq'], signal);
  const add = ['install', '-y', '-qq', '--no-install-recommends'];
  // By default the package creates and starts a database.
  if (packages.includes('postgresql') && (await run([...add, 'postgresql-common'], signal)))
    appendFileSync('/etc/postgresql-common/createcluster.conf', '\ncreate_main_cluster = false\n');
  if (await run([...add, ...packages], signal)) return;
  // One that this system does not have must not keep out the others.
  for (const name of packages) await run([...add, name], signal);
}

export function packagesOf(programs: readonly Program[]): readonly string[] {
  const names = (program: Program) => (isNpmProgram(program) ? NPM_PROGRAMS[program] : [PACKAGES[program]]);
  return [...new Set(programs.flatMap<string>(names))];
}

/** Returns the programs that these packages bring. */
export function programsIn(packages: readonly string[]): Program[] {
  const all = [...Object.keys(PACKAGES), ...Object.keys(NPM_PROGRAMS)] as Program[];
  return all.filter((program) => packagesOf([program]).every((name) => packages.includes(name)));
}

function isDebian(program: Program): boolean {
  return !isNpmProgram(program);
}

function isThere(program: Program): boolean {
  if (isNpmProgram(program)) return isInstalled(program);
  // Debian does not put these on PATH.
  if (program === 'initdb') return postgresFolder() !== null;
  return program.startsWith('/') ? existsSync(program) : isOnPath(program);
}

function isOnPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

async function run(args: readonly string[], signal?: AbortSignal): Promise<boolean> {
  if (signal?.aborted === true) return false;
  const child = spawn('apt-get', args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    // A freshly installed server must not be started by the package: the tests start their own.
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
  });
  const stop = (): void => void child.kill();
  signal?.addEventListener('abort', stop);
  const [code] = await once(child, 'close');
  signal?.removeEventListener('abort', stop);
  return code === 0;
}
