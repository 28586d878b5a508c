/** test/system/neighbours/README.md has one row for each test of test/system/neighbours, with packages that are known. */
import { globSync } from 'node:fs';
import { basename } from 'node:path';
import t from 'tap';
import { NEIGHBOURS } from '#test/runner/plan.ts';
import { packagesOf } from '#test/runner/servers.ts';
import { projectRoot } from '#test/support/process.ts';
import { readPage } from './pages.ts';

t.test('each test has a row, and each row a test', async (t) => {
  const files = globSync('test/system/neighbours/*.test.ts', { cwd: projectRoot });
  t.strictSame(files.sort(), [...NEIGHBOURS.keys()].sort());
});

t.test('the runner can install the packages of each row', async (t) => {
  const lines = readPage('test/system/neighbours/README.md').text.split('\n');
  for (const [file, programs] of NEIGHBOURS) {
    const [, packages = ''] = lines.find((line) => line.includes(`(${basename(file)})`))?.split(' | ') ?? [];
    const named = packages === 'Node.js' ? [] : packages.replaceAll('`', '').split(', ');
    t.strictSame([...packagesOf(programs)].sort(), named.sort(), file);
  }
});
