/** The images themselves, built and run without a daemon or a registry. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { dockerRuns } from '#test/docs/docker-runs.ts';
import { readPage } from '#test/docs/pages.ts';
import { hasBuildah, makeBase, offline, openBuildah } from '#test/support/buildah.ts';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { clone, freePorts, serves } from '#test/support/installation.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

t.test('the images', async (t) => {
  if (!hasBuildah) return t.fail('install buildah, and run this as root');
  const context = clone(t);
  const folder = temporaryFolder(t);
  const buildah = openBuildah(folder);
  const base = makeBase(folder);
  const from = join(folder, 'base.Dockerfile');
  writeFileSync(from, `FROM scratch\nCOPY . /\nENV PATH=/usr/local/bin:/usr/bin:/bin ${base.env}\n`);
  const [, tag = ''] =
    /^ARG NODE_IMAGE=(node:\S+)$/m.exec(readFileSync(join(context, 'Dockerfile'), 'utf8')) ?? [];
  await buildah('bud', ...offline(folder), '-t', `localhost/${tag}`, '-f', from, base.root);
  /** The format of Docker, because that of OCI has no health checks. */
  const build = async (
    name: string,
    ...options: readonly string[]
  ): Promise<[container: string, config: Config]> => {
    const format = ['--format', 'docker', '--network', 'host'];
    await buildah('bud', ...offline(folder), ...format, ...options, '-t', `localhost/${name}`, context);
    const container = await buildah('from', ...offline(folder), `localhost/${name}`);
    return [container, JSON.parse(await buildah('inspect', container)).Docker.config];
  };
  /** The words with which a program in a container starts. */
  const inside = (
    container: string,
    variables: Readonly<Record<string, string>>,
    ...options: readonly string[]
  ) => [
    ...buildah.storage,
    ...['run', '--isolation', 'chroot', ...options],
    ...Object.entries(variables).flatMap(([name, value]) => ['-e', `${name}=${value}`]),
    ...[container, '--'],
  ];
  const env = { PATH: process.env.PATH ?? '', HOME: folder };

  await t.test('the survey API behind the gateway', async (t) => {
    const [container, config] = await build('floodgate-api', '--target', 'api');
    t.match(config, { User: '1000:1000', Cmd: ['node', 'start.ts'], WorkingDir: '/app' });
    // On a busy machine the output of `buildah run` can be lost, so the exit code is checked.
    await buildah('run', '--isolation', 'chroot', container, '--', 'sh', '-c', 'test "$(id -un)" = node');
    await t.rejects(
      buildah('run', '--isolation', 'chroot', container, '--', 'mkdir', '/app/x'),
      'only data is writable',
    );
    const app = join(await buildah('mount', container), 'app');
    const unwanted = ['node_modules/tap', 'node_modules/node-linux-*', 'test', '*.env'];
    t.strictSame(globSync(unwanted, { cwd: app }), [], 'no development tools, no second Node, no secrets');
    const ports = await freePorts();
    await serves(t, ['buildah', ...inside(container, ports), ...config.Cmd], folder, env, ports);
  });

  const [container, config] = await build('floodgate', '--build-arg', 'REVISION=0123abc');
  const root = await buildah('mount', container);

  await t.test('the gateway says what it is, and has no program that installs packages', async (t) => {
    t.match(config, { User: '1000:1000', Cmd: ['node', 'gateway/main.ts'], WorkingDir: '/app' });
    t.match(config.Labels, {
      'org.opencontainers.image.title': 'Floodgate',
      'org.opencontainers.image.revision': '0123abc',
    });
    for (const path of [
      'api',
      'start.ts',
      'node_modules/better-sqlite3',
      'node_modules/pg',
      'node_modules/@aws-sdk',
    ])
      t.notOk(existsSync(join(root, 'app', path)), path);
    t.strictSame(globSync('app/node_modules/**/*.node', { cwd: root }), [], 'no native code');
    for (const path of ['bin/npm', 'bin/npx', 'bin/corepack', 'lib/node_modules', 'include'])
      t.notOk(existsSync(join(root, 'usr/local', path)), path);
    const call = ['floodgate', 'check', 'examples/login.yaml'];
    await buildah('run', '--isolation', 'chroot', container, '--', ...call);
  });

  await t.test('with the policy file that the page mounts', async (t) => {
    const run = dockerRuns(readPage('docs/install.md')).find(({ volumes }) => volumes.length > 0);
    const [[, target = ''] = []] = run?.volumes ?? [];
    const mounted = policies(t);
    const upstream = await startUpstream(t);
    const ports = await freePorts();
    const variables = {
      ...Object.fromEntries(run?.variables ?? []),
      GATEWAY_UPSTREAM: upstream.origin,
      ...ports,
    };
    const volume = ['--volume', `${mounted}:${target}:ro`];
    await started(t, 'buildah', [...inside(container, variables, ...volume), ...config.Cmd], env);
    const ask = async (): Promise<number> =>
      (await fetch(`http://127.0.0.1:${ports.GATEWAY_PORT}/`, { headers: { accept: 'text/html' } })).status;
    t.equal(await ask(), 200);
    t.equal(await ask(), 429, 'the mounted policy file applies');

    const [, ...check] = config.Healthcheck.Test;
    const isHealthy = (port = ''): Promise<unknown> =>
      promisify(execFile)('buildah', [...inside(container, { GATEWAY_ADMIN_PORT: port }), ...check], { env });
    await t.resolves(isHealthy(ports.GATEWAY_ADMIN_PORT));
    await t.rejects(isHealthy(ports.GATEWAY_PORT), 'nobody answers as the admin listener does');
  });

  await t.test('on a file system that is read only', async (t) => {
    const ports = await freePorts();
    mkdirSync(join(root, 'proc'), { recursive: true });
    const variables = config.Env.map((one) => `'${one}'`).join(' ');
    const script = `
      mount --bind ${root} ${root} && mount -o remount,ro,bind ${root} && mount -t proc proc ${root}/proc &&
      exec chroot --userspec=${config.User} ${root} /bin/env -i ${variables} \
        GATEWAY_POLICIES=/app/examples/login.yaml GATEWAY_PORT=${ports.GATEWAY_PORT} \
        GATEWAY_ADMIN_PORT=${ports.GATEWAY_ADMIN_PORT} \
        sh -c 'cd /app; if mkdir cache/x; then exit 1; fi; exec ${config.Cmd.join(' ')}'`;
    await started(t, 'unshare', ['--mount', 'sh', '-c', script], env);
    const cache = `http://127.0.0.1:${ports.GATEWAY_ADMIN_PORT}/readyz`;
    t.equal((await fetch(cache)).status, 200);
  });
});

interface Config {
  readonly Cmd: readonly string[];
  readonly Env: readonly string[];
  readonly User: string;
  readonly Labels: Readonly<Record<string, string>>;
  readonly Healthcheck: { readonly Test: readonly string[] };
}

/** @returns a folder with a policy file that the user of a container can read */
function policies(t: Test): string {
  const folder = temporaryFolder(t);
  chmodSync(folder, 0o755);
  const text = policyFile('name: all, route: GET /*, identifier: ip, limit: 1, window: 366d');
  writeFileSync(join(folder, 'policies.yaml'), text);
  return folder;
}

/** Starts a program and waits until the gateway in it is ready. */
async function started(
  t: Test,
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const gateway = spawn(program, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'], env });
  const ended = once(gateway, 'close');
  t.teardown(async () => {
    if (gateway.exitCode === null && gateway.pid !== undefined) process.kill(-gateway.pid, 'SIGTERM');
    await ended;
  });
  let output = '';
  const ready = new Promise<void>((resolve) => {
    for (const stream of [gateway.stdout, gateway.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        if (output.includes('Gateway ready')) resolve();
      });
  });
  await Promise.race([ready, ended]);
  t.match(output, 'Gateway ready');
}
