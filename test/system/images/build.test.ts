/** The image itself, built and run without a daemon and without a registry of images. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { hasBuildah, makeBase, offline, openBuildah } from '#test/support/buildah.ts';
import { clone, freePorts, serves } from '#test/support/installation.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

t.test('the image, where buildah is installed', async (t) => {
  if (!hasBuildah) {
    t.pass('buildah is not here: image.test.ts follows the steps');
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
  t.match(await buildah('run', '--isolation', 'chroot', container, '--', 'id'), 'uid=1000(node)');
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
});
