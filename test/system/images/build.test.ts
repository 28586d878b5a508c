/** The image itself, built and run without a daemon or a registry. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { dockerRuns } from '#test/docs/docker-runs.ts';
import { readPage } from '#test/docs/pages.ts';
import { hasBuildah, makeBase, offline, openBuildah } from '#test/support/buildah.ts';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { clone, freePorts, serves } from '#test/support/installation.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

t.test('the image, if buildah is installed', async (t) => {
  if (!hasBuildah) {
    t.pass('buildah is missing; instructions.test.ts runs the steps');
    return;
  }
  const context = clone(t);
  const folder = temporaryFolder(t);
  const buildah = openBuildah(folder);
  const base = makeBase(folder);
  const from = join(folder, 'base.Dockerfile');
  writeFileSync(from, `FROM scratch\nCOPY . /\nENV PATH=/usr/local/bin:/usr/bin:/bin ${base.env}\n`);
  const [, tag = ''] = /^FROM (node:\S+)$/m.exec(readFileSync(join(context, 'Dockerfile'), 'utf8')) ?? [];
  await buildah('bud', ...offline(folder), '-t', `localhost/${tag}`, '-f', from, base.root);
  await buildah('bud', ...offline(folder), '--network', 'host', '-t', 'localhost/floodgate', context);
  const container = await buildah('from', ...offline(folder), 'localhost/floodgate');
  const { OCIv1: image } = JSON.parse(await buildah('inspect', container));
  t.match(image.config, { User: 'node', Cmd: ['node', 'start.ts'], WorkingDir: '/app' });
  // On a busy machine the output of `buildah run` can be lost, so the exit code is checked.
  await buildah('run', '--isolation', 'chroot', container, '--', 'sh', '-c', 'test "$(id -un)" = node');
  await t.rejects(
    buildah('run', '--isolation', 'chroot', container, '--', 'mkdir', '/app/x'),
    'only data is writable',
  );
  const ports = await freePorts();
  const settings = Object.entries(ports).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  await serves(
    t,
    [
      'buildah',
      ...buildah.storage,
      'run',
      '--isolation',
      'chroot',
      ...settings,
      container,
      '--',
      ...image.config.Cmd,
    ],
    folder,
    { PATH: process.env.PATH ?? '', HOME: folder },
    ports,
  );

  await t.test('with the policy file that the README mounts', async (t) => {
    const run = dockerRuns(readPage('README.md')).find(({ volumes }) => volumes.length > 0);
    const [[, target = ''] = []] = run?.volumes ?? [];
    const mounted = temporaryFolder(t);
    // The container runs as another user.
    chmodSync(mounted, 0o755);
    writeFileSync(
      join(mounted, 'policies.yaml'),
      policyFile('name: all, route: GET /*, identifier: ip, limit: 1, window: 1d'),
    );
    const upstream = await startUpstream(t);
    const ports = await freePorts();
    const variables = {
      ...Object.fromEntries(run?.variables ?? []),
      GATEWAY_UPSTREAM: upstream.origin,
      ...ports,
    };
    const gateway = spawn(
      'buildah',
      [
        ...buildah.storage,
        ...['run', '--isolation', 'chroot', '--volume', `${mounted}:${target}:ro`],
        ...Object.entries(variables).flatMap(([name, value]) => ['-e', `${name}=${value}`]),
        ...[container, '--', ...(run?.command ?? [])],
      ],
      { detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env.PATH, HOME: folder } },
    );
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
    const ask = async (): Promise<number> =>
      (await fetch(`http://127.0.0.1:${ports.GATEWAY_PORT}/`, { headers: { accept: 'text/html' } })).status;
    t.equal(await ask(), 200);
    t.equal(await ask(), 429, 'the mounted policy file applies');
    const health = await fetch(`http://127.0.0.1:${ports.GATEWAY_ADMIN_PORT}/readyz`);
    t.equal(health.status, 200, 'the admin listener is on loopback');
  });
});
