import { spawnSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const PROGRAM = 'shared/node-version.cjs';

t.test('a checkout without its packages says so in one line', async (t) => {
  const copy = join(temporaryFolder(t), 'node-version.cjs');
  copyFileSync(join(projectRoot, PROGRAM), copy);
  t.match(spawnSync(process.execPath, ['-r', copy, '-e', '0'], { encoding: 'utf8' }), {
    status: 1,
    stdout: '',
    stderr: 'The packages of Floodgate are not installed: run "npm ci" first.\n',
  });
});

t.test('with its packages the program starts', async (t) => {
  const args = ['-r', join(projectRoot, PROGRAM), '-e', 'console.log("started")'];
  t.match(spawnSync(process.execPath, args, { encoding: 'utf8' }), {
    status: 0,
    stdout: 'started\n',
    stderr: '',
  });
});
