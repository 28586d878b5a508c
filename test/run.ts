/**
 * `npm test`: every test file as a process of its own, several at once, the longest first. `npm test -- FILE…` runs some.
 *
 * tap's own runner would do but for one thing: it puts hooks into each process that read every module twice, to know
 * what a report of coverage would need. That is half a second of a processor for each file, and there are hundreds.
 */
import { spawn } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from './support/process.ts';

/** What would keep one processor busy at the end while the others have nothing left to do. */
const longest = [
  'test/api/hostile.test.ts',
  'test/api/events/crash.test.ts',
  'test/api/stop.test.ts',
  'test/image-build.test.ts',
  'test/image.test.ts',
  'test/e2e/browser.test.ts',
  'test/gateway/main.test.ts',
];
/** For one file, on a busy machine. */
const TIMEOUT_SECONDS = 300;

const all = globSync('test/**/*.test.ts', { cwd: projectRoot }).sort();
const unknown = longest.filter((file) => !all.includes(file));
if (unknown.length > 0) throw new Error(`test/run.ts names files that are not there: ${unknown.join(', ')}`);
const chosen = process.argv.slice(2);
const missing = chosen.filter((file) => !existsSync(join(projectRoot, file)));
if (missing.length > 0) throw new Error(`No such file: ${missing.join(', ')}`);
const files = chosen.length > 0 ? chosen : [...new Set([...longest, ...all])];

// People read a summary; everything else, such as `.ci/run`, reads TAP.
if (process.stdout.isTTY) {
  const reporter = spawn('tap', ['-'], { stdio: ['pipe', 'inherit', 'inherit'] });
  t.pipe(reporter.stdin);
}
t.setTimeout(0);
// Many files wait for processes, servers and pauses more than they work.
t.jobs = availableParallelism() + 1;
t.plan(files.length);
for (const file of files) {
  const options = {
    cwd: projectRoot,
    buffered: true,
    timeout: TIMEOUT_SECONDS * 1000,
    env: { ...process.env, TAP_TIMEOUT: String(TIMEOUT_SECONDS) },
  };
  t.spawn(process.execPath, [file], options, file);
}
