/**
 * `npm test`: every test file outside test/system, on SQLite. `npm run test:all`: those of test/system, and on PostgreSQL
 * those of all files that test what differs there, and those of random tests, with a new seed. `npm test -- FILE…` runs
 * some, on SQLite unless TEST_DATABASE says `postgres`. Several processes at once, the most important files first in
 * test:all, the longest in `npm test`.
 *
 * Writes TAP: one test for each file, with what the file wrote as its subtest, then all failures again, and the sum of
 * their summaries. With `--minutes N` no file begins later than that; those that run are ended 15 minutes after it. Both,
 * and those whose programs cannot be installed, are listed and summed as `notRun`.
 *
 * tap's own runner does the same for a third more of the processors: it puts hooks into each process that read every
 * module twice, to know what a report of coverage would need, and it reads and writes again each line of each file.
 */
import { randomInt } from 'node:crypto';
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { SHARED_SERVER } from '#test/support/postgres.ts';
import { startPostgres } from '#test/support/postgres-process.ts';
import { projectRoot } from '#test/support/process.ts';
import {
  databasesOf,
  groupsOf,
  importanceOf,
  isInLongSuite,
  programsOf,
  SYSTEM,
  type Task,
  type TestDatabase,
  testQueue,
} from './plan.ts';
import { failures, resultsOf } from './report.ts';
import { canInstall, install, installCommand, missing } from './servers.ts';
import { runFiles } from './test-process.ts';

/** These begin first. Otherwise the run would wait for them at the end. */
const longest = [
  'test/gateway/limiter/every-order.test.ts',
  'test/policies/policies.test.ts',
  'test/api/http/hostile.test.ts',
];
/** Many files wait for processes, servers and pauses, so there are more jobs than processors. */
const JOBS = availableParallelism() + 2;
/** Files that run when the minutes are over get this much more time. */
const GRACE_MS = 15 * 60_000;
const outcomes = ['total', 'pass', 'fail', 'skip', 'todo', 'notRun'] as const;
const DATABASES = ['sqlite', 'postgres'] as const;

const { values: options, positionals: chosen } = parseArgs({
  allowPositionals: true,
  options: { system: { type: 'boolean' }, minutes: { type: 'string' } },
});
const start = performance.now();
const isLimited = options.minutes !== undefined;
const minutes = Number(options.minutes ?? Number.POSITIVE_INFINITY);
if (!(minutes >= 0)) exit(`--minutes: "${options.minutes}" is not a number of minutes`);
const wanted = databaseWanted();
// Without one, the tests take their fixed seed.
const seed = process.env.TEST_SEED ?? (options.system === true ? String(randomInt(2 ** 31)) : undefined);
// A test of the longer suite installs packages below test/, and some bring tests of their own.
const all = globSync('test/**/*.test.ts', { cwd: projectRoot, exclude: ['**/node_modules/**'] }).sort();
const unknown = [...longest, ...chosen].filter((file) => !all.includes(file));
if (unknown.length > 0) exit(`There is no test file ${unknown.join(', ')}`);

const tasks = DATABASES.flatMap((database) =>
  groupsOf(all.filter(isWantedOn(database)), longest).map((files) => taskOf(files, database)),
);
if (options.system === true) tasks.sort((a, b) => a.importance - b.importance);
const needed = [...new Set(tasks.flatMap(({ programs }) => programs))];
const absent = missing(needed);
const told = `The tests need ${needed.join(', ')}.`;
const command = installCommand(absent);
// With a limit of time, run everything that is possible.
if (absent.length > 0 && !isLimited && !canInstall(absent))
  exit(`${told} Install ${absent.join(', ')} and run again, on Debian or Ubuntu: sudo ${command}`);
const isOver = isLimited ? after(minutes * 60_000) : undefined;
const stop = isLimited ? after(minutes * 60_000 + GRACE_MS) : undefined;
const out = process.stdout;
out.write('TAP version 14\n');
if (options.system === true) out.write(`# ${told}\n`);
if (seed !== undefined) out.write(`# TEST_SEED=${seed} repeats the random tests of this run.\n`);
if (absent.length > 0) out.write(`# Installing: ${command}\n`);
const installing = absent.length > 0 ? install(absent, isOver) : Promise.resolve();
if (!isLimited) await installing;
if (!isLimited && missing(absent).length > 0)
  exit(`Still missing after the installation: ${missing(absent).join(', ')}. Install by hand: ${command}`);

const queue = testQueue(tasks, isLimited ? absent : [], installing);
/** All files share one server. Each creates its own databases. */
let postgres = null as ReturnType<typeof startPostgres> | null;
const sum = { total: 0, pass: 0, fail: 0, skip: 0, todo: 0, notRun: 0 };
const failed: string[] = [];
const notRun: string[] = [];
let count = 0;

await Promise.all(Array.from({ length: JOBS }, work));
await (await postgres)?.close();
out.write(`1..${count}\n`);
if (notRun.length > 0) out.write(['# Not run:', ...notRun].join('\n# ').concat('\n'));
if (failed.length > 0) out.write(['# Failed:', ...failed].join('\n# ').concat('\n'));
const shown = outcomes.filter((name) => name === 'total' || name === 'pass' || sum[name] > 0);
out.write(`# { ${shown.map((name) => `${name}: ${sum[name]}`).join(', ')} }\n`);
out.write(`# time=${Math.round(performance.now() - start)}ms\n`);
process.exitCode = sum.fail > 0 || count === 0 ? 1 : 0;

function exit(why: string): never {
  console.error(why);
  process.exit(1);
}

function after(ms: number): AbortSignal {
  return ms > 0 ? AbortSignal.timeout(ms) : AbortSignal.abort();
}

/** undefined if TEST_DATABASE is not set. */
function databaseWanted(): TestDatabase | undefined {
  const name = process.env.TEST_DATABASE;
  if (name === undefined || name === 'sqlite' || name === 'postgres') return name;
  return exit(`TEST_DATABASE: "${name}" is not one of sqlite, postgres`);
}

function isWantedOn(database: TestDatabase): (file: string) => boolean {
  return (file) => {
    const databases = databasesOf(file);
    if (chosen.length > 0) return chosen.includes(file) && database === (wanted ?? databases[0]);
    if (options.system !== true) return !file.startsWith(SYSTEM) && database === 'sqlite';
    return isInLongSuite(file, database);
  };
}

function taskOf(files: readonly string[], database: TestDatabase): Task & { readonly importance: number } {
  const [first = ''] = files;
  return {
    files,
    database,
    programs: [...new Set(files.flatMap((file) => programsOf(file, database)))],
    importance: importanceOf(first, database),
  };
}

async function work(): Promise<void> {
  for (let task = await queue.next(); task !== null; task = await queue.next()) {
    const lacking = missing(task.programs);
    if (isOver?.aborted === true) leave(task, task.files, 'could not begin in time');
    else if (lacking.length > 0) leave(task, task.files, `needs ${lacking.join(', ')}, not installed`);
    else await run(task);
  }
}

async function run(task: Task): Promise<void> {
  const { files, database } = task;
  const env: Record<string, string> = {
    TEST_DATABASE: database,
    ...(seed === undefined ? {} : { TEST_SEED: seed }),
  };
  if (database === 'postgres') {
    postgres ??= startPostgres();
    env[SHARED_SERVER] = (await postgres).url;
  }
  const outcome = await runFiles(files, {
    env,
    label: labelOf(task),
    ...(stop === undefined ? {} : { signal: stop }),
  });
  for (const name of outcomes) sum[name] += outcome.counts[name] ?? 0;
  failed.push(...failures(outcome.tap));
  out.write(
    shownOf(outcome.tap).replaceAll(/^(not ok|ok) \d+/gm, (_, isOk) => {
      count += 1;
      return `${isOk} ${count}`;
    }),
  );
  leave(task, outcome.stopped, 'was ended, since it could not end in time');
}

function leave(task: Task, files: readonly string[], why: string): void {
  for (const file of files) {
    count += 1;
    sum.notRun += 1;
    notRun.push(`${file}${labelOf(task)}: ${why}`);
    out.write(`ok ${count} - ${file}${labelOf(task)} # SKIP ${why}\n`);
  }
}

function labelOf({ database }: Task): string {
  return database === 'postgres' ? ' (PostgreSQL)' : '';
}

/**
 * A terminal shows a line for each file, and the failures at the end. Everything else, such as `.ci/run`, gets all of
 * TAP.
 */
function shownOf(tap: string): string {
  return process.stdout.isTTY ? resultsOf(tap) : tap;
}
