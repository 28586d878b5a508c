/**
 * The Debian packages: installed by dpkg below a folder of their own, run, upgraded, removed and purged. No systemd runs
 * here, so a script stands for `systemctl`: it writes down its calls, and passes signals to the gateway.
 */
import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { builtVersion } from '#package/version.ts';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { environment } from '#test/support/gateway-process.ts';
import { hammer } from '#test/support/hammer.ts';
import { freePort } from '#test/support/ports.ts';
import { projectRoot, type Started, startProgram } from '#test/support/process.ts';
import { makeRelease } from '#test/support/release.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const run = promisify(execFile);
const PATH = '/usr/sbin:/usr/bin:/sbin:/bin';
/** As the unit starts it: not as root, without capabilities. */
const UNPRIVILEGED = [
  'setpriv',
  '--reuid=65534',
  '--regid=65534',
  '--clear-groups',
  '--no-new-privs',
  '--bounding-set=-all',
  '--inh-caps=-all',
];

const SYSTEMCTL = `#!/bin/sh
folder=$(dirname "$0")
echo "$*" >>"$folder/calls"
case "$*" in
  is-active*) exec kill -0 "$(cat "$folder/pid")" ;;
  kill*--signal=SIGUSR2*) exec kill -USR2 "$(cat "$folder/pid")" ;;
  disable*--now*) if [ -e "$folder/pid" ]; then exec kill -TERM "$(cat "$folder/pid")"; fi ;;
esac
`;

/** Version of the upgrade. */
const NEXT = '99.0.0';
/** dpkg may take minutes on a busy machine. */
const PATIENT = { GATEWAY_UPSTREAM_TIMEOUT_MS: '600000', GATEWAY_DRAIN_TIMEOUT_MS: '600000' };

interface Machine {
  readonly root: string;
  /** Writes down which process is the unit's. */
  isRunning(pid: number): void;
  calls(): readonly string[];
  dpkg(...args: readonly string[]): Promise<string>;
}

/** A folder with an empty list of packages, as the root of a file system. */
function machine(t: Test): Machine {
  const root = temporaryFolder(t);
  const tools = temporaryFolder(t);
  for (const folder of ['var/lib/dpkg/info', 'var/lib/dpkg/updates', 'run/systemd/system'])
    mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, 'var/lib/dpkg/status'), '');
  chmodSync(root, 0o755);
  writeFileSync(join(tools, 'systemctl'), SYSTEMCTL, { mode: 0o755 });
  // The libraries of Node.js are those of this machine.
  const options = [
    `--root=${root}`,
    '--force-script-chrootless',
    '--force-depends',
    '--force-confdef',
    '--force-confold',
  ];
  return {
    root,
    isRunning: (pid) => writeFileSync(join(tools, 'pid'), String(pid)),
    calls: () =>
      existsSync(join(tools, 'calls')) ? readFileSync(join(tools, 'calls'), 'utf8').trim().split('\n') : [],
    async dpkg(...args) {
      const env = { PATH: `${tools}:${PATH}`, LC_ALL: 'C' };
      const { stdout, stderr } = await run('dpkg', [...options, ...args], { env });
      return stdout + stderr;
    },
  };
}

/** Returns the same package with a higher version, as the next release would be. */
function nextVersion(t: Test, deb: string, version: string): string {
  const folder = temporaryFolder(t);
  const tree = join(folder, 'tree');
  execFileSync('dpkg-deb', ['--raw-extract', deb, tree]);
  for (const file of ['DEBIAN/control', 'usr/lib/floodgate/dist/package.json']) {
    const text = readFileSync(join(tree, file), 'utf8');
    writeFileSync(join(tree, file), text.replace(/(^Version: |"version": ")[\d.]+/m, `$1${version}`));
  }
  const next = join(folder, 'next.deb');
  execFileSync('dpkg-deb', ['--root-owner-group', '-Znone', '--build', tree, next], { stdio: 'ignore' });
  return next;
}

const version = builtVersion(projectRoot);
const release = await makeRelease(t);
const debOf = (name: string): string => {
  const [file = ''] = readdirSync(release).filter((file) => file.startsWith(`${name}_`));
  return join(release, file);
};

/** Starts the gateway as its unit does: its user, folder, variables and file of settings. */
async function startUnit(
  t: Test,
  { root, isRunning }: Machine,
  settings: Record<string, string>,
): Promise<Started> {
  const unit = readFileSync(join(root, 'usr/lib/systemd/system/floodgate.service'), 'utf8');
  const variables = [...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)].filter(
    ([, name]) => name !== 'NODE_COMPILE_CACHE',
  );
  const written = readFileSync(join(root, 'etc/floodgate/gateway.env'), 'utf8').matchAll(/^(\w+)=(.*)$/gm);
  const env = Object.fromEntries(
    [...variables, ...written].map(([, name = '', value = '']) => [name, value]),
  );
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
  const [program = '', ...args] = command.split(' ');
  const gateway = startProgram(
    [...UNPRIVILEGED, join(root, program), ...args],
    { HOME: '/', ...env, ...settings },
    join(root, 'etc/floodgate'),
  );
  t.teardown(() => gateway.stop('SIGKILL'));
  isRunning(gateway.child.pid ?? 0);
  await gateway.until(/Gateway ready/);
  return gateway;
}

t.test(
  'the gateway is installed, runs, is upgraded without a lost request, removed and purged',
  async (t) => {
    const here = machine(t);
    const { root, dpkg } = here;
    await dpkg('--install', debOf('floodgate'));
    t.strictSame(here.calls(), ['daemon-reload'], 'it is not started before somebody has configured it');
    const cwd = join(root, 'etc/floodgate');
    const floodgate = async (...args: string[]): Promise<string> =>
      (await run(join(root, 'usr/bin/floodgate'), args, { cwd })).stdout;
    t.ok((await floodgate('--version')).startsWith(version));
    t.match(await floodgate('check', 'policies.yaml'), /no mistakes/, 'the delivered policy file is right');

    const held = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const upstream = await startUpstream(t, (req, res) => {
      if (req.url !== '/held') return void res.end();
      arrived.resolve();
      held.promise.then(() => res.end('whole'));
    });
    const own = `GATEWAY_UPSTREAM=${upstream.origin}\n`;
    writeFileSync(join(cwd, 'gateway.env'), own);
    writeFileSync(
      join(cwd, 'policies.yaml'),
      policyFile('name: a, route: GET /a, identifier: ip, limit: 1, window: 366d'),
    );
    const settings = await environment(PATIENT);
    const gateway = await startUnit(t, here, settings);
    const port = Number(settings.GATEWAY_PORT);
    // Each request has a connection of its own, which the new gateway accepts if there is one.
    const ask = async (path: string): Promise<number> =>
      (await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } })).status;
    t.strictSame([await ask('/a'), await ask('/a')], [200, 429]);

    const reply = fetch(`http://127.0.0.1:${port}/held`).then((res) => res.text());
    await arrived.promise;
    const clients = hammer(port, '/x', 4, { triesOneByOne: 3 });
    await dpkg('--install', nextVersion(t, debOf('floodgate'), NEXT));
    await gateway.until(/Gateway ready.*Gateway ready/s);
    await gateway.until(/draining/);
    held.resolve();
    t.equal(await reply, 'whole', 'the old gateway finishes its requests');
    t.equal(await ask('/a'), 200, 'the new gateway counts afresh, because there is no Redis');
    await clients.stop();
    t.strictSame(clients.broken, []);
    t.ok((await floodgate('--version')).startsWith(NEXT));
    t.equal(readFileSync(join(cwd, 'gateway.env'), 'utf8'), own, 'the file of the operator stays');

    await dpkg('--remove', 'floodgate');
    t.equal(await gateway.ended(), 0, 'the unit is stopped first');
    t.strictSame(here.calls().slice(-2), ['disable --now --quiet floodgate.service', 'daemon-reload']);
    t.notOk(existsSync(join(root, 'usr/lib/floodgate')), 'nothing of the program is left');
    t.ok(existsSync(join(cwd, 'gateway.env')), 'the settings are left');
    await dpkg('--purge', 'floodgate');
    t.notOk(existsSync(cwd));
  },
);

t.test('the survey API is installed apart, and runs with the Node.js of the gateway', async (t) => {
  const { root, dpkg, calls } = machine(t);
  await dpkg('--install', debOf('floodgate'), debOf('floodgate-api'));
  const [unit, template] = ['floodgate-api', 'floodgate-api@'].map((name) =>
    readFileSync(join(root, `usr/lib/systemd/system/${name}.service`), 'utf8'),
  );
  t.equal(template, unit, 'several processes are instances of the same unit');
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit ?? '') ?? [];
  const [node = '', main = ''] = command.split(' ');
  const state = temporaryFolder(t);
  chmodSync(state, 0o777);
  const port = await freePort();
  const env = {
    HOME: '/',
    DATABASE_URL: 'file:floodgate.sqlite',
    STORAGE_PATH: 'uploads',
    API_PORT: String(port),
  };
  const api = startProgram([...UNPRIVILEGED, join(root, node), join(root, main)], env, state);
  t.teardown(() => api.stop('SIGKILL'));
  await api.until(/127\.0\.0\.1:\d+/);
  t.equal((await fetch(`http://127.0.0.1:${port}/health`)).status, 200);
  t.ok(existsSync(join(state, 'floodgate.sqlite')));
  t.equal(await api.stop('SIGTERM'), 0);
  await dpkg('--purge', 'floodgate-api', 'floodgate');
  t.ok(calls().includes('stop floodgate-api@*.service'), 'also the instances are stopped');
  t.ok(calls().includes('disable --quiet floodgate-api@.service'));
  t.notOk(existsSync(join(root, 'usr/lib/floodgate-api')));
});
