/** Runs `.ci/run` with an npm that does nothing or fails. Its result must depend only on the tests. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

interface Said {
  readonly text: string;
  readonly status?: number;
}

const GOOD: Said = { text: '# { total: 5, pass: 5 }' };

/** Runs the script in a separate folder, with given results of both suites. */
function run(
  t: Test,
  quick: Said,
  { all = GOOD, lint = 0, edit = (script: string): string => script } = {},
): { status: number | null; last: string; stdout: string } {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, '.ci'));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, '.ci/run'), edit(readFileSync(join(projectRoot, '.ci/run'), 'utf8')));
  const program = (name: string, text: string): void => {
    writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, 'bin', name), 0o755);
  };
  const suite = ({ text, status = 0 }: Said): string => `cat <<'TAP'\n${text}\nTAP\nexit ${status}`;
  program('npm', `case "$1" in\ntest) ${suite(quick)};;\nrun) ${suite(all)};;\nesac`);
  program('npx', `exit ${lint}`);
  const result = spawnSync('bash', [join(folder, '.ci/run')], {
    encoding: 'utf8',
    env: { PATH: `${join(folder, 'bin')}:${process.env.PATH}` },
  });
  const { status, stdout } = result;
  return { status, stdout, last: stdout.trimEnd().split('\n').at(-1) ?? '' };
}

t.test('counts the tests that passed, in both suites', async (t) => {
  t.match(run(t, GOOD), { status: 0, last: /^10 passed, 0 failed$/ });
});

t.test('the failures of both suites and of lint stand before the last line', async (t) => {
  const failing = (name: string): Said => ({
    text: `not ok 1 - ${name}\n# Failed:\n# not ok 1 - ${name}\n#   at: line 3\n# { total: 2, pass: 1, fail: 1 }`,
  });
  const { stdout } = run(t, failing('one'), { all: failing('two'), lint: 1 });
  t.match(stdout.trimEnd().split('\n').slice(-7), [
    '== # not ok 1 - one',
    '== #   at: line 3',
    '== biome check failed',
    '== tsc --noEmit failed',
    '== # not ok 1 - two',
    '== #   at: line 3',
    '2 passed, 4 failed',
  ]);
});

t.test('a run without tests fails, even if lint and types are clean', async (t) => {
  for (const text of ['', '# { total: 0 }', 'nothing to do']) {
    t.match(run(t, { text }), { status: 1, last: /^5 passed, 1 failed$/ }, text);
    t.match(run(t, GOOD, { all: { text } }), { status: 1, last: /^5 passed, 1 failed$/ }, text);
  }
});

t.test('failures, skips and crashes fail the run, in either suite', async (t) => {
  for (const [text, status, last] of [
    ['# { total: 5, pass: 3, fail: 2 }', 1, /^8 passed, 2 failed$/],
    ['# { total: 5, pass: 4, skip: 1 }', 0, /^9 passed, 1 failed$/],
    ['# { total: 5, pass: 4, todo: 1 }', 0, /^9 passed, 1 failed$/],
    ['# { total: 5, pass: 5 }', 1, /^10 passed, 1 failed$/],
  ] as const) {
    t.match(run(t, { text, status }), { status: 1, last }, text);
    t.match(run(t, GOOD, { all: { text, status } }), { status: 1, last }, text);
  }
  t.match(run(t, GOOD, { lint: 1 }), { status: 1, last: /^10 passed, 2 failed$/ }, 'lint and types fail');
});

t.test('lists files that could not run, without failing', async (t) => {
  const all = { text: '# { total: 3, pass: 3, notRun: 12 }' };
  t.match(run(t, GOOD, { all }), { status: 0, last: /^8 passed, 0 failed, 12 skipped$/ });
  const none = { text: '# { total: 0, pass: 0, notRun: 70 }' };
  t.match(run(t, GOOD, { all: none }), { status: 0, last: /^5 passed, 0 failed, 70 skipped$/ });
});

t.test('the larger suite gets the rest of the hour', async (t) => {
  t.match(run(t, GOOD).stdout, /^== npm run test:all -- --minutes (?:60|[345]\d)$/m);
  const late = (script: string): string => script.replace('MINUTES=60', 'MINUTES=0');
  t.match(run(t, GOOD, { edit: late }).stdout, /^== npm run test:all -- --minutes 0$/m);
});
