/** Runs test files in a process of their own, and returns their results as TAP. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { projectRoot } from '#test/support/process.ts';

/** A process that reports no result for this long hangs. A slow machine is not a failure, so this is long. */
const SILENT_MS = 1_800_000;

export interface Outcome {
  /** The files as subtests, without a plan. The numbers count within this process. */
  readonly tap: string;
  /** Number of assertions by outcome: total, pass, fail, skip, todo. */
  readonly counts: Readonly<Record<string, number>>;
  /** Files that a signal ended early; they count neither as passed nor as failed. */
  readonly stopped: readonly string[];
}

const PROGRAM = join(projectRoot, 'test/runner/test-files.ts');
const POINT = /^(not ok|ok) \d+ - (\S+)/gm;
const NOT_OK = /^ *not ok /m;
const FRAME = /^(?:TAP version 14|\d+\.\.\d+|# \{ total: .*|# time=.*)\n/gm;
const NAME = /^((?:# Subtest: |(?:not ok|ok) \d+ - )\S+)/gm;
const WAIT = /^Still waiting .*/gm;
/** A longer description of a wait is cut. */
const WAIT_SHOWN = 500;

export interface RunOptions {
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Follows the name of each file, for files that run more than once. */
  readonly label?: string;
  /** Ends the process and everything that it started. */
  readonly signal?: AbortSignal;
  readonly silentMs?: number;
}

/** Runs the files in sequence. A file that the process did not finish has failed. */
export async function runFiles(
  files: readonly string[],
  { env = {}, label = '', signal: stop, silentMs = SILENT_MS }: RunOptions = {},
): Promise<Outcome> {
  const child = spawn(process.execPath, [PROGRAM, ...files], {
    cwd: projectRoot,
    env: { ...process.env, TAP_TIMEOUT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let wait = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    process.stderr.write(chunk);
    wait = chunk.match(WAIT)?.at(-1)?.slice(0, WAIT_SHOWN) ?? wait;
  });
  const ending = endedInTime(child, silentMs, stop);
  const [said, [code, signal]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  const why = [ending() ?? `exit code ${code}, signal ${signal}`, wait].filter(Boolean).join('; ');

  const points = [...said.matchAll(POINT)];
  const ended = new Set(points.map(([, , name]) => name));
  const unfinished = files.filter((file) => !ended.has(file));
  const failed = [...unfinished];
  // The file that was stopped counts as failed only if a part of it has failed.
  if (stop?.aborted === true) failed.length = NOT_OK.test(textAfter(said, points)) ? 1 : 0;
  const counts = countsOf(said, points);
  // A crash outside of every assertion is a failure too.
  if (unfinished.length === 0 && code !== 0 && !counts.fail) failed.push(`the process of ${files.join(' ')}`);
  for (const outcome of ['total', 'fail']) counts[outcome] = Number(counts[outcome]) + failed.length;
  return {
    tap:
      said.replaceAll(FRAME, '').replaceAll(NAME, `$1${label}`) +
      failed.map((file) => `not ok 0 - ${file}${label} (${why})\n`).join(''),
    counts,
    stopped: unfinished.filter((file) => !failed.includes(file)),
  };
}

/** Returns the output of the file that was not finished. */
function textAfter(said: string, points: readonly RegExpExecArray[]): string {
  const last = points.at(-1);
  return last === undefined ? said : said.slice(last.index + last[0].length);
}

/** A process that was ended has written no summary. Then each finished file counts as one. */
function countsOf(said: string, points: readonly RegExpExecArray[]): Record<string, number> {
  const summary = /^# \{ (total: .*) \}$/m.exec(said)?.[1];
  const pass = points.filter(([, result]) => result === 'ok').length;
  const counts: Record<string, number> =
    summary === undefined
      ? { total: points.length, pass, fail: points.length - pass }
      : { total: 0, pass: 0, fail: 0 };
  for (const [, name = '', count] of (summary ?? '').matchAll(/(\w+): (\d+)/g)) counts[name] = Number(count);
  return counts;
}

/**
 * Ends the process and its descendants if it hangs or is told to.
 *
 * @returns the reason for the end
 */
function endedInTime(
  child: ChildProcess,
  silentMs: number,
  stop: AbortSignal | undefined,
): () => string | null {
  let why: string | null = null;
  const end = (reason: string): void => {
    why ??= reason;
    endTree(child.pid ?? 0);
  };
  const silence = setTimeout(() => end(`it hung: no result in ${silentMs / 1000} seconds`), silentMs);
  child.stdout?.on('data', () => silence.refresh());
  const onStop = (): void => end('there was no time left');
  stop?.addEventListener('abort', onStop);
  child.once('exit', () => {
    clearTimeout(silence);
    stop?.removeEventListener('abort', onStop);
  });
  return () => why;
}

/** Returns the process and its descendants; empty if it has ended. */
function treeOf(pid: number): readonly number[] {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    const children = tasks.flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'latin1').split(' ').filter(Boolean).map(Number),
    );
    return [pid, ...children.flatMap(treeOf)];
  } catch {
    return [];
  }
}

/** Kills them, parents first, so that none starts another. */
function endTree(pid: number): void {
  for (const one of treeOf(pid)) {
    try {
      process.kill(one, 'SIGKILL');
    } catch {
      // It has ended in the meantime.
    }
  }
}
