/** An installation without the tools of developers: it starts, and on a Node.js that is too old it says so. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { clone, freePorts, installing, serves } from '#test/support/installation.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

t.test('npm ci --omit=dev', async (t) => {
  const workingFolder = clone(t);
  const folder = temporaryFolder(t);
  const env = installing(folder);
  // Without the Node.js of the project, as the image has it.
  execFileSync('npm', ['ci', '--omit=dev', '--omit=optional'], { cwd: workingFolder, env, stdio: 'pipe' });
  t.notOk(existsSync(join(workingFolder, 'node_modules/tap')), 'no development tools');

  await t.test('npm start serves, on the installed Node', async (t) => {
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
