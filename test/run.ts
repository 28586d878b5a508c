/**
 * `npm test`: every test file, in several processes at once, the longest first; those that store something on SQLite and
 * again on PostgreSQL. `npm test -- FILE…` runs some, on SQLite unless TEST_DATABASE says `postgres` or `both`.
 * Writes TAP: one test for each file, with what the file wrote as its subtest, then all failures again, and the sum of
 * their summaries. `--times` adds which files took most of the processors, themselves and by what they started.
 *
 * tap's own runner does the same for a third more of the processors: it puts hooks into each process that read every
 * module twice, to know what a report of coverage would need, and it reads and writes again each line of each file.
 */
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { databasesOf, type TestDatabase } from './support/databases-of-files.ts';
import { failures, resultsOf } from './support/failures.ts';
import { SHARED_SERVER } from './support/postgres.ts';
import { startPostgres } from './support/postgres-process.ts';
import { projectRoot } from './support/process.ts';
import { slowest, type Used } from './support/processor-times.ts';
import { byWeight, groupsOf } from './support/test-groups.ts';
import { runFiles } from './support/test-process.ts';

/** Most of these wait more than they work. Begun last, they would be waited for when all others are done. */
const longest = [
  'test/api/db/postgres-crash.test.ts',
  'test/api/events/crash.test.ts',
  'test/api/processes/kill-one.test.ts',
  'test/api/processes/workers.test.ts',
  'test/api/processes/two-processes.test.ts',
  'test/api/parallel-writers/every-route.test.ts',
  'test/api/parallel-writers/schedules.test.ts',
  'test/api/stop.test.ts',
  'test/image-build.test.ts',
  'test/gateway/replay/equality.test.ts',
  'test/api/hostile.test.ts',
  'test/image.test.ts',
  'test/gateway/admin/live.test.ts',
  'test/gateway/limits.test.ts',
  'test/api/resources/storage/end-to-end.test.ts',
  'test/gateway/store/cluster.test.ts',
  'test/gateway/main.test.ts',
  'test/e2e/browser.test.ts',
  'test/api/main.test.ts',
  'test/api/accounts-run.test.ts',
  'test/api/events/processes.test.ts',
  'test/gateway/reload.test.ts',
  'test/gateway/store/sentinel.test.ts',
  'test/api/mail/mailer.test.ts',
  'test/api/docs/wrong-requests.test.ts',
  'test/api/docs/refusals.test.ts',
  'test/api/docs/replies.test.ts',
];
/** Many files wait for processes, servers and pauses, so there are more of them than processors. */
const JOBS = availableParallelism() + 2;
const outcomes = ['total', 'pass', 'fail', 'skip', 'todo'] as const;

const all = globSync('test/**/*.test.ts', { cwd: projectRoot }).sort();
const isTimed = process.argv.includes('--times');
const chosen = process.argv.slice(2).filter((argument) => argument !== '--times');
const unknown = [...longest, ...chosen].filter((file) => !all.includes(file));
if (unknown.length > 0) {
  console.error(`There is no test file ${unknown.join(', ')}`);
  process.exit(1);
}
const databases = databasesWanted(process.env.TEST_DATABASE ?? (chosen.length > 0 ? 'sqlite' : 'both'));
const files = chosen.length > 0 ? chosen : [...new Set([...longest, ...all])];
/** One server for all files; each makes databases of its own there. */
const postgres = databases.includes('postgres') ? await startPostgres() : null;
const out = process.stdout;
const start = performance.now();
const sum = { total: 0, pass: 0, fail: 0, skip: 0, todo: 0 };
const waiting = databases
  .flatMap((database) => {
    const ours = files.filter((file) => databasesOf(file, databases).includes(database));
    return groupsOf(ours, longest).map((group) => ({ ...group, database }));
  })
  .sort(byWeight)
  .values();
const used: Used[] = [];
const failed: string[] = [];
let count = 0;

out.write('TAP version 14\n');
await Promise.all(Array.from({ length: JOBS }, runWaiting));
await postgres?.close();
out.write(`1..${count}\n`);
if (isTimed) for (const line of slowest(used)) out.write(`# ${line}\n`);
if (failed.length > 0) out.write(['# Failed:', ...failed].join('\n# ').concat('\n'));
const shown = outcomes.filter((name) => name === 'total' || name === 'pass' || sum[name] > 0);
out.write(`# { ${shown.map((name) => `${name}: ${sum[name]}`).join(', ')} }\n`);
out.write(`# time=${Math.round(performance.now() - start)}ms\n`);
process.exitCode = sum.fail > 0 ? 1 : 0;

function databasesWanted(name: string): readonly TestDatabase[] {
  if (name === 'both') return ['sqlite', 'postgres'];
  if (name === 'sqlite' || name === 'postgres') return [name];
  console.error(`TEST_DATABASE: "${name}" is not one of sqlite, postgres, both`);
  process.exit(1);
}

async function runWaiting(): Promise<void> {
  for (const { files, database } of waiting) {
    const outcome = await runFiles(files, {
      env: {
        TEST_DATABASE: database,
        ...(postgres === null ? {} : { [SHARED_SERVER]: postgres.url }),
      },
      label: database === 'postgres' && databases.length > 1 ? ' (PostgreSQL)' : '',
    });
    for (const name of outcomes) sum[name] += outcome.counts[name] ?? 0;
    used.push(...outcome.used);
    failed.push(...failures(outcome.tap));
    out.write(
      shownOf(outcome.tap).replaceAll(/^(not ok|ok) \d+/gm, (_, isOk) => {
        count += 1;
        return `${isOk} ${count}`;
      }),
    );
  }
}

/** On a terminal: a line for each file, and at the end what failed. Everything else, such as `.ci/run`, reads all of TAP. */
function shownOf(tap: string): string {
  return process.stdout.isTTY ? resultsOf(tap) : tap;
}
