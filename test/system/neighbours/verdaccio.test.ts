/** Verdaccio, a registry, with npm: packages with a scope have an encoded slash in their path. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { folderWith } from '#test/runner/npm-programs.ts';
import { ask, outputOf, startNeighbour, type Way } from '#test/support/neighbour.ts';

const folder = folderWith(t, 'verdaccio');
writeFileSync(
  join(folder, 'config.yaml'),
  `storage: ${folder}/storage
auth: { htpasswd: { file: ${folder}/htpasswd } }
packages: { "**": { access: $all, publish: $all, unpublish: $all } }
log: { type: stdout, format: pretty, level: warn }
max_body_size: 10mb
`,
);
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => [
    process.execPath,
    'node_modules/verdaccio/bin/verdaccio',
    ...['--config', join(folder, 'config.yaml'), '--listen', `http://127.0.0.1:${port}`],
  ],
});

async function npm({ name, host, origin }: Way, args: readonly string[], cwd: string): Promise<string> {
  writeFileSync(join(folder, `${name}.npmrc`), `registry=${origin}/\n//${host}/:_authToken=any\n`);
  return outputOf(['npm', ...args], {
    cwd,
    env: {
      npm_config_userconfig: join(folder, `${name}.npmrc`),
      npm_config_cache: join(folder, `${name}-cache`),
    },
  });
}

t.test('a package with a scope is published, found and installed', async (t) => {
  const versions = { directly: '1.0.0', 'through the gateway': '1.0.1' };
  await neighbour.same(t, 'what is installed', async (way) => {
    const version = versions[way.name];
    const [made, used] = [join(folder, `${way.name} made`), join(folder, `${way.name} used`)];
    mkdirSync(made);
    mkdirSync(used);
    writeFileSync(join(made, 'package.json'), JSON.stringify({ name: '@scope/name', version }));
    writeFileSync(join(made, 'large.txt'), 'text '.repeat(60_000));
    writeFileSync(join(used, 'package.json'), '{}');
    await npm(way, ['publish', '--access', 'public'], made);
    const view = await npm(way, ['view', `@scope/name@${version}`, 'dist.tarball'], used);
    await npm(way, ['dist-tag', 'add', `@scope/name@${version}`, 'beta'], used);
    await npm(way, ['install', '--no-audit', '--no-fund', '@scope/name@beta'], used);
    const installed = join(used, 'node_modules/@scope/name');
    const { version: got } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
    const { length } = readFileSync(join(installed, 'large.txt'));
    return { view: view.replace(version, 'VERSION'), isRight: got === version, length };
  });
});

t.test('addresses of packages', async (t) => {
  for (const path of [
    '/@scope%2fname',
    '/@scope%2Fname',
    '/@scope/name',
    '/%40scope%2fname',
    '/@scope%2fname/-/name-1.0.0.tgz',
    '/none',
  ])
    await neighbour.same(t, path, async (way) => {
      const { status, body } = await ask(way, path);
      return { status, length: body.length };
    });
});
