/**
 * `npm test`: every test file, in several processes at once, the longest first; those that store something on SQLite and
 * again on PostgreSQL. `npm test -- FILE…` runs some, on SQLite unless TEST_DATABASE says `postgres` or `both`.
 * Writes TAP: one test for each file, with what the file wrote as its subtest, then all failures again, and the sum of
 * their summaries. `--times` adds which files took most of the processors, themselves and by what they started.
 *
 * tap's own runner does the same for a third more of the processors: it puts hooks into each process that read every
 * module twice, to know what a report of coverage would need, and it reads and writes again each line of each file.
 */
import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { databasesOf, type TestDatabase } from './support/databases-of-files.ts';
import { failures } from './support/failures.ts';
import { SHARED_SERVER } from './support/postgres.ts';
import { startPostgres } from './support/postgres-process.ts';
import { projectRoot } from './support/process.ts';
import { slowest, type Used } from './support/processor-times.ts';
import { byWeight, groupsOf } from './support/test-groups.ts';
import { runFiles } from './support/test-process.ts';

/** Most of these wait more than they work. Begun last, they would be waited for when all others are done. */
const longest = [
  'test/system/postgres/crash.test.ts',
  'test/api/events/crash.test.ts',
  'test/system/crashes/one-of-two-apis.test.ts',
  'test/system/processes/api-workers.test.ts',
  'test/system/exactness/two-apis.test.ts',
  'test/api/parallel-writers/every-route.test.ts',
  'test/api/parallel-writers/schedules.test.ts',
  'test/system/crashes/api-stop.test.ts',
  'test/system/images/build.test.ts',
  'test/gateway/replay/equality.test.ts',
  'test/api/hostile.test.ts',
  'test/system/images/instructions.test.ts',
  'test/system/cluster/operator.test.ts',
  'test/system/exactness/edge-table.test.ts',
  'test/system/browsers/uploads.test.ts',
  'test/system/cluster/cluster.test.ts',
  'test/gateway/main.test.ts',
  'test/system/browsers/cors.test.ts',
  'test/api/main.test.ts',
  'test/system/pages/accounts-run.test.ts',
  'test/system/exactness/events-of-two-apis.test.ts',
  'test/gateway/reload.test.ts',
  'test/system/cluster/sentinel.test.ts',
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
const out = reporter();
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
out.end(`# time=${Math.round(performance.now() - start)}ms\n`);
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
      outcome.tap.replaceAll(/^(not ok|ok) \d+/gm, (_, isOk) => {
        count += 1;
        return `${isOk} ${count}`;
      }),
    );
  }
}

/** People read a summary; everything else, such as `.ci/run`, reads TAP. */
function reporter(): NodeJS.WritableStream {
  if (!process.stdout.isTTY) return process.stdout;
  return spawn('tap', ['-'], { stdio: ['pipe', 'inherit', 'inherit'] }).stdin;
}
