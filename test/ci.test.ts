/** `.ci/run` with an npm that does nothing or fails: what it says must follow from the tests alone. */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

/** Runs the script in a folder of its own, where `npm test` says what it is told to; lint and types are fine. */
function run(t: Test, says: string, status = 0, lint = 0): { status: number | null; last: string } {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, '.ci'));
  mkdirSync(join(folder, 'bin'));
  cpSync(join(projectRoot, '.ci/run'), join(folder, '.ci/run'));
  const program = (name: string, text: string): void => {
    writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, 'bin', name), 0o755);
  };
  program('npm', `[ "$1" = test ] || exit 0\ncat <<'TAP'\n${says}\nTAP\nexit ${status}`);
  program('npx', `exit ${lint}`);
  const result = spawnSync('bash', [join(folder, '.ci/run')], {
    encoding: 'utf8',
    env: { PATH: `${join(folder, 'bin')}:${process.env.PATH}` },
  });
  return { status: result.status, last: result.stdout.trimEnd().split('\n').at(-1) ?? '' };
}

t.test('tests that pass are what is counted', async (t) => {
  t.strictSame(run(t, '# { total: 5, pass: 5 }'), { status: 0, last: '5 passed, 0 failed' });
});

t.test('no test at all is a failure, though lint and types are fine', async (t) => {
  for (const says of ['', '# { total: 0 }', 'nothing to do']) {
    t.strictSame(run(t, says), { status: 1, last: '0 passed, 1 failed' }, says);
  }
});

t.test('failures, skips and crashes are failures', async (t) => {
  t.strictSame(run(t, '# { total: 5, pass: 3, fail: 2 }', 1), { status: 1, last: '3 passed, 2 failed' });
  t.strictSame(run(t, '# { total: 5, pass: 4, skip: 1 }'), { status: 1, last: '4 passed, 1 failed' });
  t.strictSame(run(t, '# { total: 5, pass: 5 }', 1), { status: 1, last: '5 passed, 1 failed' });
  t.strictSame(
    run(t, '# { total: 5, pass: 5 }', 0, 1),
    { status: 1, last: '5 passed, 2 failed' },
    'lint, types',
  );
});
