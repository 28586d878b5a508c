/** Tests the runner's report of files that fail, throw, stop half-way or end their process. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { failures } from '#test/runner/report.ts';
import { type Outcome, type RunOptions, runFiles } from '#test/runner/test-process.ts';
import { lives } from '#test/support/gateway-process.ts';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const GOOD = `t.test('one', async (t) => t.equal(1, 1));`;

/** Runs the texts as files of one process: 0.ts, 1.ts and so on. */
function run(t: Test, ...texts: readonly string[]): Promise<Outcome & { readonly results: string[] }> {
  return runWith(t, {}, texts);
}

async function runWith(
  t: Test,
  options: RunOptions,
  texts: readonly string[],
): Promise<Outcome & { readonly results: string[] }> {
  const folder = temporaryFolder(t);
  const files = texts.map((text, index) => {
    const file = join(folder, `${index}.ts`);
    writeFileSync(file, `import t from 'tap';\n${text}\n`);
    return file;
  });
  const outcome = await runFiles(files, options);
  const results = [...outcome.tap.matchAll(/^(ok|not ok) \d+ - \S+\/(\d+)\.ts/gm)];
  return { ...outcome, results: results.map(([, result, name]) => `${name} ${result}`) };
}

t.test('each file is a subtest of its own, with all its output', async (t) => {
  const { tap, counts, results } = await run(t, GOOD, `t.test('two', async (t) => { t.ok(1); t.ok(2); });`);
  t.strictSame(results, ['0 ok', '1 ok']);
  t.strictSame(counts, { total: 3, pass: 3, fail: 0 });
  t.match(tap, /^ {4}# Subtest: one\n {8}ok 1/m);
  t.notMatch(tap, /^(TAP|1\.\.|# \{|# time)/m, 'lines about a whole run are left to the runner');
});

t.test('a file gives its resources back before the next one runs', async (t) => {
  const holding = `t.ok(1); globalThis.held = true; t.teardown(async () => { globalThis.held = false; });`;
  const { counts } = await run(t, holding, `t.equal(globalThis.held, false);`);
  t.strictSame(counts, { total: 2, pass: 2, fail: 0 });
});

t.test('a failing file fails alone', async (t) => {
  const failing = `t.test('bad', async (t) => t.equal(1, 2));`;
  const { counts, results } = await run(t, GOOD, failing, `t.todo('later');`, GOOD);
  t.strictSame(results, ['0 ok', '1 not ok', '2 ok', '3 ok']);
  t.strictSame(counts, { total: 4, pass: 2, fail: 1, todo: 1 });
});

t.test('a file that cannot be loaded, throws or rejects fails alone', async (t) => {
  const bad = [
    'const = 1;',
    `throw new Error('x');`,
    `import './none.ts';`,
    `t.test('x', async () => { throw new Error('x'); });`,
    `t.test('x', () => new Promise((_, reject) => setImmediate(reject, new Error('x'))));`,
    `t.test('x', () => new Promise(() => setImmediate(() => { throw new Error('x'); })));`,
  ];
  const { counts, results } = await run(t, ...bad.flatMap((text) => [text, GOOD]));
  t.strictSame(
    results,
    bad.flatMap((_, i) => [`${2 * i} not ok`, `${2 * i + 1} ok`]),
  );
  t.strictSame(counts, { total: 12, pass: 6, fail: 6 });
});

t.test('a file whose teardown fails has failed', async (t) => {
  const { counts, results } = await run(t, `t.ok(1); t.teardown(() => { throw new Error('x'); });`, GOOD);
  t.match(results, ['0 not ok']);
  t.equal(results.at(-1), '1 ok');
  t.ok(Number(counts.fail) > 0);
});

t.test('a process that ends early fails the rest of its files', async (t) => {
  for (const text of [
    `t.test('x', async () => process.exit(0));`,
    `t.test('x', async () => process.kill(process.pid, 'SIGKILL'));`,
    `t.test('x', () => new Promise(() => undefined));`,
    'await new Promise(() => undefined);',
  ]) {
    const { counts, results, tap } = await run(t, GOOD, text, GOOD);
    t.strictSame([...results].sort(), ['0 ok', '1 not ok', '2 not ok'], text);
    t.ok(Number(counts.fail) >= 2, text);
    t.match(tap, /^not ok 0 - \S+2\.ts \(exit code \S+, signal \S+\)$/m, text);
  }
});

/** A program that starts a process, writes its id into the file in BEGUN, and waits for ever. */
const HANGING = `
  import { spawn } from 'node:child_process';
  import { writeFileSync } from 'node:fs';
  writeFileSync(process.env.BEGUN, String(spawn('sleep', ['100000']).pid));
  await new Promise(() => undefined);
`;

function begunFile(t: Test): { readonly env: Record<string, string>; pid(): number } {
  const file = join(temporaryFolder(t), 'begun');
  writeFileSync(file, '');
  return { env: { BEGUN: file }, pid: () => Number(readFileSync(file, 'utf8')) };
}

t.test('a file that hangs is ended with all its processes, and fails', async (t) => {
  const { env, pid } = begunFile(t);
  const waiting = `process.stderr.write('Still waiting after 60 s: for an apple\\n');${HANGING}`;
  const { tap, counts, results } = await runWith(t, { silentMs: 30_000, env }, [GOOD, waiting, GOOD]);
  t.ok(pid() > 0);
  await until(() => !lives(pid()));
  t.strictSame(results, ['0 ok', '1 not ok', '2 not ok']);
  t.strictSame(counts, { total: 3, pass: 1, fail: 2 });
  t.match(
    tap,
    /^not ok 0 - \S+1\.ts \(it hung: no result in 30 seconds; Still waiting after 60 s: for an apple\)$/m,
  );
});

t.test('a stopped file has neither passed nor failed, unless a test failed before', async (t) => {
  for (const [first, expected] of [
    ['', { counts: { total: 1, pass: 1, fail: 0 }, stopped: 2 }],
    [`t.test('bad', async (t) => t.equal(1, 2));`, { counts: { total: 2, pass: 1, fail: 1 }, stopped: 1 }],
  ] as const) {
    const { env, pid } = begunFile(t);
    const stop = new AbortController();
    const running = runWith(t, { signal: stop.signal, env }, [GOOD, `${first}\n${HANGING}`, GOOD]);
    await until(() => pid() > 0);
    stop.abort();
    const { counts, stopped } = await running;
    t.strictSame(counts, expected.counts);
    t.equal(stopped.length, expected.stopped);
    await until(() => !lives(pid()));
  }
});

t.test('an error after the last assertion is a failure', async (t) => {
  for (const text of [
    `process.once('exit', () => { process.exitCode = 3; });`,
    `setTimeout(() => { throw new Error('x'); }, 1);`,
    `setTimeout(() => void Promise.reject(new Error('x')), 1);`,
  ]) {
    const { counts } = await run(t, `t.ok(1); ${text}`);
    t.strictSame(counts, { total: 2, pass: 1, fail: 1 }, text);
  }
});

t.test('a second run of a file has its own environment and name', async (t) => {
  const text = `t.equal(process.env.STORE, 'other');`;
  const { tap, counts } = await runWith(t, { env: { STORE: 'other' }, label: ' (other)' }, [text]);
  t.equal(counts.pass, 1);
  t.match(tap, /^# Subtest: \S+0\.ts \(other\)$/m);
  t.match(tap, /^ok 1 - \S+0\.ts \(other\) # time/m);
});

t.test('the end of a log has all failures with their details, and nothing else', async (t) => {
  const bad = `t.test('a good one', async (t) => t.ok(1));\n\n\n\n\nt.test('a bad one', async (t) => t.equal(1, 2, 'of two'));`;
  const { tap } = await run(t, bad, GOOD, `process.kill(process.pid, 'SIGKILL');`);
  const lines = failures(tap);
  t.match(lines[0], /^ {8}not ok 1 - of two/);
  t.ok(lines.includes('            -2'), 'the expected value is shown');
  const results = lines
    .filter((line) => /not ok/.test(line))
    .map((line) => line.replace(/\S+\/|#.*/g, '').trim());
  t.strictSame(results.slice(1), [
    'not ok 2 - a bad one',
    'not ok 1 - 0.ts',
    'not ok 0 - 2.ts (exit code null, signal SIGKILL)',
  ]);
  t.notMatch(lines.join('\n'), /a good one|1\.ts/);
});

t.test('without time left nothing begins, and skipped runs are listed', async (t) => {
  const { status, stdout } = spawnSync(
    process.execPath,
    ['test/runner/main.ts', '--system', '--minutes', '0'],
    {
      cwd: projectRoot,
      encoding: 'utf8',
      // Nothing may be installed.
      env: { PATH: '/nowhere' },
    },
  );
  t.equal(status, 0);
  const left = [
    ...stdout.matchAll(/^ok \d+ - (\S+\.ts)( \(PostgreSQL\))? # SKIP could not begin in time$/gm),
  ];
  t.match(stdout, `\n# { total: 0, pass: 0, notRun: ${left.length} }\n`);
  const names = left.map(([, file, database = '']) => `${file}${database}`);
  for (const name of [
    'test/system/crashes/one-of-two-apis.test.ts',
    'test/system/crashes/one-of-two-apis.test.ts (PostgreSQL)',
    'test/system/postgres/crash.test.ts (PostgreSQL)',
    'test/api/parallel-writers/concurrent-writes.test.ts (PostgreSQL)',
  ])
    t.ok(names.includes(name), name);
  t.notOk(names.includes('test/api/parallel-writers/concurrent-writes.test.ts'), 'npm test runs this file');
  t.ok(stdout.includes(`# ${names.at(-1)}: could not begin in time\n`), 'they are listed at the end');
});

t.test('reports wrong arguments', async (t) => {
  for (const [args, said] of [
    [['--minutes', 'x'], /--minutes: "x" is not a number of minutes/],
    [['test/none.test.ts'], /There is no test file test\/none\.test\.ts/],
  ] as const) {
    const { status, stderr } = spawnSync(process.execPath, ['test/runner/main.ts', ...args], {
      cwd: projectRoot,
      encoding: 'utf8',
    });
    t.equal(status, 1);
    t.match(stderr, said);
  }
});
