/**
 * `npm test`: every test file as a process of its own, several at once, the longest first; those that store something on
 * SQLite and again on PostgreSQL. `npm test -- FILE…` runs some, on SQLite unless TEST_DATABASE says `postgres` or `both`.
 * Writes TAP: one test for each file, with what the file wrote as its subtest, and the sum of their summaries.
 *
 * tap's own runner does the same for a third more of the processors: it puts hooks into each process that read every
 * module twice, to know what a report of coverage would need, and it reads and writes again each line of each file.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { text } from 'node:stream/consumers';
import { databasesOf, type TestDatabase } from './support/databases-of-files.ts';
import { SHARED_SERVER } from './support/postgres.ts';
import { startPostgres } from './support/postgres-process.ts';
import { projectRoot } from './support/process.ts';

/** Most of these wait more than they work. Begun last, they would be waited for when all others are done. */
const longest = [
  'test/api/events/crash.test.ts',
  'test/api/stop.test.ts',
  'test/api/hostile.test.ts',
  'test/image-build.test.ts',
  'test/image.test.ts',
  'test/api/resources/storage/end-to-end.test.ts',
  'test/gateway/store/cluster.test.ts',
  'test/gateway/main.test.ts',
  'test/e2e/browser.test.ts',
  'test/api/main.test.ts',
  'test/gateway/store/sentinel.test.ts',
  'test/api/mail/mailer.test.ts',
  'test/api/docs/wrong-requests.test.ts',
  'test/api/docs/refusals.test.ts',
  'test/api/docs/replies.test.ts',
];
/** What tap allows a file that asks for nothing else, on a busy machine. */
const TIMEOUT_SECONDS = 300;
/** The longest that any file asks for. One that has not ended by then hangs. */
const KILL_AFTER_MS = 900_000;
/** Many files wait for processes, servers and pauses, so there are more of them than processors. */
const JOBS = availableParallelism() + 2;
const outcomes = ['total', 'pass', 'fail', 'skip', 'todo'] as const;

const all = globSync('test/**/*.test.ts', { cwd: projectRoot }).sort();
const chosen = process.argv.slice(2);
const unknown = [...longest, ...chosen].filter((file) => !all.includes(file));
if (unknown.length > 0) {
  console.error(`There is no test file ${unknown.join(', ')}`);
  process.exit(1);
}
const databases = databasesWanted(process.env.TEST_DATABASE ?? (chosen.length > 0 ? 'sqlite' : 'both'));
const files = chosen.length > 0 ? chosen : [...new Set([...longest, ...all])];
const runs = files.flatMap((file) =>
  databasesOf(file, databases).map((database) => ({
    file,
    database,
    name: database === 'postgres' && databases.length > 1 ? `${file} (PostgreSQL)` : file,
  })),
);
/** One server for all files; each makes databases of its own there. */
const postgres = databases.includes('postgres') ? await startPostgres() : null;
const environment = {
  ...process.env,
  TAP_TIMEOUT: String(TIMEOUT_SECONDS),
  ...(postgres === null ? {} : { [SHARED_SERVER]: postgres.url }),
};
const out = reporter();
const start = performance.now();
const sum = { total: 0, pass: 0, fail: 0, skip: 0, todo: 0 };
const waiting = runs.values();
let count = 0;

out.write(`TAP version 14\n1..${runs.length}\n`);
await Promise.all(Array.from({ length: JOBS }, runFiles));
await postgres?.close();
const shown = outcomes.filter((name) => name === 'total' || name === 'pass' || sum[name] > 0);
out.write(`# { ${shown.map((name) => `${name}: ${sum[name]}`).join(', ')} }\n`);
out.end(`# time=${Math.round(performance.now() - start)}ms\n`);
process.exitCode = sum.fail > 0 ? 1 : 0;

function databasesWanted(name: string): readonly TestDatabase[] {
  if (name === 'both') return ['sqlite', 'postgres'];
  if (name === 'sqlite' || name === 'postgres') return [name];
  console.error(`TEST_DATABASE: "${name}" is not one of sqlite, postgres, both`);
  process.exit(1);
}

async function runFiles(): Promise<void> {
  for (const { file, database, name } of waiting) {
    const begin = performance.now();
    const child = spawn(process.execPath, [file], {
      cwd: projectRoot,
      env: { ...environment, TEST_DATABASE: database },
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: KILL_AFTER_MS,
      killSignal: 'SIGKILL',
    });
    const [said, [code, signal]] = await Promise.all([text(child.stdout), once(child, 'close')]);
    const summary = /^# \{ (total: .*) \}$/m.exec(said)?.[1];
    const counted = Object.fromEntries((summary ?? '').split(', ').map((part) => part.split(': ')));
    for (const name of outcomes) sum[name] += Number(counted[name] ?? 0);
    const isOk = code === 0 && summary !== undefined;
    // A crash outside of every assertion is a failure all the same.
    if (!isOk && !(Number(counted.fail) > 0)) {
      sum.total += 1;
      sum.fail += 1;
    }
    const subtest = said
      .replace(/^TAP version 14\n/, '')
      .trimEnd()
      .replaceAll(/^(?=.)/gm, '    ');
    count += 1;
    const end = isOk ? '' : ` (exit code ${code}, signal ${signal})`;
    const took = `# time=${Math.round(performance.now() - begin)}ms`;
    out.write(
      `# Subtest: ${name}\n${subtest}\n${isOk ? 'ok' : 'not ok'} ${count} - ${name}${end} ${took}\n\n`,
    );
  }
}

/** People read a summary; everything else, such as `.ci/run`, reads TAP. */
function reporter(): NodeJS.WritableStream {
  if (!process.stdout.isTTY) return process.stdout;
  return spawn('tap', ['-'], { stdio: ['pipe', 'inherit', 'inherit'] }).stdin;
}
