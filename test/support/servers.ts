/**
 * The pretest step: the tests talk to real servers, so each one named here must be installed.
 * What is missing is installed from Debian's packages when we are root; otherwise the step ends with exit 1
 * and says exactly what to install. Nothing is ever skipped in silence.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, appendFileSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { postgresFolder } from './postgres-process.ts';

/** Program on PATH, or of PostgreSQL -> Debian package that brings it. */
const needed: ReadonlyMap<string, string> = new Map([
  ['redis-server', 'redis-server'],
  ['curl', 'curl'],
  ['openssl', 'openssl'],
  ['haproxy', 'haproxy'],
  ['nginx', 'nginx'],
  ['caddy', 'caddy'],
  ['chromium', 'chromium'],
  ['initdb', 'postgresql'],
  ['promtool', 'prometheus'],
]);

function isThere(program: string): boolean {
  // Debian keeps these off PATH.
  if (program === 'initdb') return postgresFolder() !== null;
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function run(command: string, args: readonly string[]): boolean {
  const { status } = spawnSync(command, args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    // A freshly installed server must not be started by the package: the tests start their own.
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
  });
  return status === 0;
}

const missing = [...needed].filter(([program]) => !isThere(program));
if (missing.length > 0) {
  const packages = missing.map(([, name]) => name);
  const byHand = `apt-get install ${packages.join(' ')}`;
  const canInstall = process.getuid?.() === 0 && isThere('apt-get');
  console.error(`The tests need ${missing.map(([program]) => program).join(', ')}, which are not installed.`);
  if (!canInstall) {
    console.error(`Install them and run again, on Debian or Ubuntu: sudo ${byHand}`);
    process.exit(1);
  }
  console.error(`Installing: ${byHand}`);
  run('apt-get', ['update', '-qq']);
  const install = (names: readonly string[]): boolean =>
    run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names]);
  // The package makes and starts a database of its own unless it is told not to.
  if (packages.includes('postgresql') && install(['postgresql-common'])) {
    appendFileSync('/etc/postgresql-common/createcluster.conf', '\ncreate_main_cluster = false\n');
  }
  install(packages);
  const still = missing.filter(([program]) => !isThere(program)).map(([program]) => program);
  if (still.length > 0) {
    console.error(`Still missing after the installation: ${still.join(', ')}. Install by hand: ${byHand}`);
    process.exit(1);
  }
}
