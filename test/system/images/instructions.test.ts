/**
 * An installation without the tools of developers, as `npm ci --omit=dev` and the image make it: it is complete, it
 * starts, and on a Node.js that is too old it says so. The Dockerfile is followed step by step in a fresh folder.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { followDockerfile } from '#test/support/dockerfile.ts';
import { clone, freePorts, installing, serves } from '#test/support/installation.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

/** Returns the versions of the installed packages by their paths. */
function packagesIn(folder: string): Readonly<Record<string, string>> {
  const { packages } = JSON.parse(readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8'));
  return Object.fromEntries(
    Object.entries(packages as Record<string, { version: string }>).map(([path, { version }]) => [
      path,
      version,
    ]),
  );
}

t.test('the steps of the Dockerfile, in a fresh folder', async (t) => {
  const context = clone(t);
  const folder = temporaryFolder(t);
  const env = installing(folder);
  const { api, gateway } = await followDockerfile(context, folder, env);
  const workingFolder = api?.workingFolder ?? '';
  t.notOk(existsSync(join(workingFolder, 'node_modules/tap')), 'no development tools');
  t.strictSame(globSync('node_modules/node-linux-*', { cwd: workingFolder }), [], 'no Node of its own');
  t.notOk(existsSync(join(workingFolder, 'test')));
  t.strictSame(
    readdirSync(workingFolder).filter((name) => name.endsWith('.env')),
    [],
    'no .env files',
  );

  await t.test('the image of the gateway has nothing of the survey API', async (t) => {
    const there = (path: string): boolean => existsSync(join(gateway?.workingFolder ?? '', path));
    t.ok(there('gateway/main.ts') && there('node_modules/ioredis'));
    for (const path of [
      'api',
      'start.ts',
      'node_modules/better-sqlite3',
      'node_modules/pg',
      'node_modules/@aws-sdk',
    ])
      t.notOk(there(path), path);
    const native = globSync('**/*.node', { cwd: join(gateway?.workingFolder ?? '', 'node_modules') });
    t.strictSame(native, [], 'no native code');
    const locked = packagesIn(workingFolder);
    for (const [path, version] of Object.entries(packagesIn(gateway?.workingFolder ?? '')))
      t.equal(version, locked[path], path);
  });

  await t.test('the command of the image with the survey API serves', async (t) => {
    const ports = await freePorts();
    await serves(t, api?.command ?? [], workingFolder, { ...env, ...api?.env, ...ports }, ports);
  });

  await t.test('npm start serves too, on the installed Node', async (t) => {
    const ports = await freePorts();
    await serves(t, ['npm', 'start'], workingFolder, { ...env, ...ports }, ports);
  });

  await t.test('a Node that is too old prints what is missing in one sentence', async (t) => {
    const old = join(folder, 'old.cjs');
    writeFileSync(
      old,
      "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: process.env.AS } });",
    );
    for (const script of ['start', 'start:gateway', 'start:api']) {
      for (const version of ['20.20.2', '22.23.3', '24.6.0']) {
        if (script !== 'start' && version !== '20.20.2') continue;
        const { status, stderr } = spawnSync('npm', ['run', '-s', script], {
          cwd: workingFolder,
          encoding: 'utf8',
          env: { ...env, NODE_OPTIONS: '', AS: version, npm_config_node_options: `--require ${old}` },
        });
        t.equal(status, 1, script);
        t.match(stderr, `Floodgate needs Node.js 24.7 or later, and this is ${version}`);
        t.notMatch(stderr, /^ {4}at /m, 'no stack trace');
      }
    }
  });
});
