/** Tests how a checkout finds the command, and that its second call compiles less. */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const read = (file: string) => JSON.parse(readFileSync(join(projectRoot, file), 'utf8'));

t.test('npm links the command at install, and npx uses the link', async (t) => {
  const { bin, dependencies } = read('package.json');
  t.equal(bin, undefined, 'a command of the project itself would go through the cache of npm at each call');
  t.equal(dependencies['floodgate-command'], 'file:package/command');
  t.strictSame(read('package/command/package.json').bin, { floodgate: 'floodgate.mjs' });
  t.strictSame(read('package-lock.json').packages['node_modules/floodgate-command'], {
    resolved: 'package/command',
    link: true,
  });
  const linked = join(projectRoot, 'package/command/floodgate.mjs');
  t.match(execFileSync(process.execPath, [linked, '--help'], { encoding: 'utf8' }), 'floodgate check');
  t.notOk('floodgate-command' in read('package/package.json').dependencies, 'it has its own command');
});

t.test('caches compiled code for the next call', async (t) => {
  const folder = temporaryFolder(t);
  const call = (cacheHome: string): void => {
    const { NODE_COMPILE_CACHE: _, ...env } = process.env;
    const out = execFileSync(process.execPath, [join(folder, 'gateway/cli/floodgate.mjs'), '--help'], {
      encoding: 'utf8',
      env: { ...env, XDG_CACHE_HOME: cacheHome },
    });
    t.match(out, 'a command');
  };
  // Stands for an installed package, without its own node_modules.
  cpSync(join(projectRoot, 'gateway/cli/floodgate.mjs'), join(folder, 'gateway/cli/floodgate.mjs'));
  writeFileSync(join(folder, 'gateway/cli/main.js'), "import './other.mjs';");
  writeFileSync(join(folder, 'gateway/cli/other.mjs'), "console.log('a command');");
  const user = join(folder, 'user');
  call(user);
  t.ok(globSync('floodgate/*/*', { cwd: user }).length > 0, 'the cache is in the home of the user');
  const file = join(folder, 'file');
  writeFileSync(file, '');
  call(file);
  t.pass('the command runs without a cache folder');
});

t.test('in a checkout the cache is in node_modules', async (t) => {
  const folder = temporaryFolder(t);
  cpSync(join(projectRoot, 'gateway/cli/floodgate.mjs'), join(folder, 'gateway/cli/floodgate.mjs'));
  cpSync(join(projectRoot, 'package/command'), join(folder, 'node_modules/floodgate-command'), {
    recursive: true,
  });
  writeFileSync(join(folder, 'gateway/cli/main.js'), "import './other.mjs';");
  writeFileSync(join(folder, 'gateway/cli/other.mjs'), '');
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  execFileSync(process.execPath, [join(folder, 'gateway/cli/floodgate.mjs')], { env });
  t.ok(globSync('node_modules/.cache/node/*/*', { cwd: folder }).length > 0);
});
