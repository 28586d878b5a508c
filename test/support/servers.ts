/**
 * The pretest step: the tests talk to real servers, so each one named here must be on PATH.
 * What is missing is installed from Debian's packages when we are root; otherwise the step ends with exit 1
 * and says exactly what to install. Nothing is ever skipped in silence.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Program on PATH -> Debian package that brings it. */
const needed: ReadonlyMap<string, string> = new Map([
  ['redis-server', 'redis-server'],
  ['curl', 'curl'],
  ['openssl', 'openssl'],
  ['chromium', 'chromium'],
]);

function onPath(program: string): boolean {
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

const missing = [...needed].filter(([program]) => !onPath(program));
if (missing.length > 0) {
  const packages = missing.map(([, name]) => name);
  const byHand = `apt-get install ${packages.join(' ')}`;
  const canInstall = process.getuid?.() === 0 && onPath('apt-get');
  console.error(
    `The tests need ${missing.map(([program]) => program).join(', ')}, which PATH does not have.`,
  );
  if (!canInstall) {
    console.error(`Install them and run again, on Debian or Ubuntu: sudo ${byHand}`);
    process.exit(1);
  }
  console.error(`Installing: ${byHand}`);
  run('apt-get', ['update', '-qq']);
  run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages]);
  const still = missing.filter(([program]) => !onPath(program)).map(([program]) => program);
  if (still.length > 0) {
    console.error(`Still missing after the installation: ${still.join(', ')}. Install by hand: ${byHand}`);
    process.exit(1);
  }
}
