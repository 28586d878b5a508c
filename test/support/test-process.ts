/** Test files in a process of their own: what became of each, as TAP. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { projectRoot } from './process.ts';
import type { Used } from './processor-times.ts';

/** The longest that any file asks for. A process that takes longer for each of its files hangs. */
const KILL_AFTER_MS = 900_000;

export interface Outcome {
  /** The files as subtests, without a plan; their numbers are those of this process. */
  readonly tap: string;
  /** Assertions by their outcome: total, pass, fail, skip, todo. */
  readonly counts: Readonly<Record<string, number>>;
  readonly used: readonly Used[];
}

const PROGRAM = join(projectRoot, 'test/support/test-files.ts');
const POINT = /^(not ok|ok) \d+ - (\S+)/gm;
const FRAME = /^(?:TAP version 14|\d+\.\.\d+|# \{ total: .*|# time=.*)\n/gm;
const NAME = /^((?:# Subtest: |(?:not ok|ok) \d+ - )\S+)/gm;
const CPU = /^# cpu own=(\d+)ms started=(\d+)ms (.+)\n/gm;

export interface RunOptions {
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Of this run, behind the name of each file: where files run more than once. */
  readonly label?: string;
}

/** Runs the files one after the other. A file that the process did not get to the end of has failed. */
export async function runFiles(
  files: readonly string[],
  { env = {}, label = '' }: RunOptions = {},
): Promise<Outcome> {
  const child = spawn(process.execPath, [PROGRAM, ...files], {
    cwd: projectRoot,
    // Each file has a limit of its own.
    env: { ...process.env, TAP_TIMEOUT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: KILL_AFTER_MS * files.length,
    killSignal: 'SIGKILL',
  });
  const [said, [code, signal]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  const summary = /^# \{ (total: .*) \}$/m.exec(said)?.[1] ?? '';
  const counts: Record<string, number> = { total: 0, pass: 0, fail: 0 };
  for (const [, name = '', count] of summary.matchAll(/(\w+): (\d+)/g)) counts[name] = Number(count);

  const ended = new Set([...said.matchAll(POINT)].map(([, , name]) => name));
  const failed = files.filter((file) => !ended.has(file));
  // A crash outside of every assertion is a failure all the same.
  if (failed.length === 0 && code !== 0 && !counts.fail) failed.push(`the process of ${files.join(' ')}`);
  for (const outcome of ['total', 'fail']) counts[outcome] = Number(counts[outcome]) + failed.length;
  const why = `exit code ${code}, signal ${signal}`;
  return {
    tap:
      said.replaceAll(FRAME, '').replaceAll(NAME, `$1${label}`) +
      failed.map((file) => `not ok 0 - ${file}${label} (${why})\n`).join(''),
    counts,
    used: [...said.matchAll(CPU)].map(([, own, started, name = '']) => ({
      name: name + label,
      own: Number(own),
      started: Number(started),
    })),
  };
}
