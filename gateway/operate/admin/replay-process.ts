/**
 * Runs `floodgate replay` in a separate process with low priority and bounded memory and time. It ends with its caller.
 * The gateway's own process serves requests meanwhile.
 */
import { spawn } from 'node:child_process';
import { getCompileCacheDir } from 'node:module';
import { constants, setPriority } from 'node:os';
import { dirname, join } from 'node:path';
import type { Problem } from '#gateway/policy/problems.ts';
import { EXIT } from '#shared/cli/exit.ts';
import type { Millis } from '#shared/clock.ts';

interface ReplayFilesOptions {
  readonly folder: string;
  readonly edited: string;
  readonly inUse: string;
  readonly log: string;
  readonly salt: string;
  readonly timeoutMs: Millis;
  readonly signal: AbortSignal;
}

export interface ReplayOutcome {
  readonly status: 200 | 400 | 408 | 413 | 503;
  /** A text is already JSON. It may be long, so this process does not parse it. */
  readonly document: object | string;
}

export const STOPPED: ReplayOutcome = { status: 503, document: { message: 'the replay was stopped' } };

interface Ended {
  /** Exit code; null if the process was killed. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const PROGRAM = join(import.meta.dirname, '../../cli/floodgate.mjs');
/**
 * The compile cache of this process, if it has one, because a short replay mostly compiles. Node keeps a subfolder for
 * each version.
 */
const cache = getCompileCacheDir();
const compileCache = cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) };
const HEAP_MIB = 256;
const OUTPUT_MAX = 16_777_216;
/** Makes the process end with the gateway, even if that is killed. */
const WITH_PARENT =
  'data:text/javascript,process.once("disconnect",()=>process.exit(3));process.channel.unref()';

/** @throws the command's message about an error in itself */
export async function replayFiles(options: ReplayFilesOptions): Promise<ReplayOutcome> {
  const { edited, inUse, log, signal } = options;
  const ended = await runProgram(['replay', log, '--file', edited, '--against', inUse, '--json'], options);
  if (signal.aborted) return STOPPED;
  const { code, stdout, stderr } = ended;
  if (code === EXIT.ok) return { status: 200, document: stdout };
  if (code === EXIT.no || code === EXIT.usage)
    return { status: 400, document: { message: stderr.trim(), problems: await problemsOf(options) } };
  // Node exits with 134 if the heap is full. In a container the signal becomes a code above 128.
  if (code === null || code > 128)
    return {
      status: 400,
      document: {
        message: `the replay took longer than ${options.timeoutMs / 1000} s, or more than ${HEAP_MIB} MiB of memory; send a shorter part of the log, or use floodgate replay on the command line`,
        problems: [],
      },
    };
  throw new Error(`floodgate replay ended with ${code}: ${stderr}`);
}

/** Returns the mistakes that `check` finds; empty if the edited file is right. */
async function problemsOf(options: ReplayFilesOptions): Promise<readonly Problem[]> {
  const { code, stdout } = await runProgram(['check', options.edited, '--json'], options);
  if (code !== EXIT.no) return [];
  return (JSON.parse(stdout) as { readonly problems: readonly Problem[] }).problems;
}

function runProgram(
  args: readonly string[],
  { folder, salt, timeoutMs, signal }: ReplayFilesOptions,
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const flags = [`--max-old-space-size=${HEAP_MIB}`, '--import', WITH_PARENT];
    const child = spawn(process.execPath, [...flags, PROGRAM, ...args], {
      cwd: folder,
      env: { GATEWAY_IDENTITY_SECRET: salt, ...compileCache },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      signal,
    });
    const said = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name]?.setEncoding('utf8').on('data', (text: string) => {
        said[name] += text;
        if (said[name].length > OUTPUT_MAX) child.kill('SIGKILL');
      });
    child.on('error', (error) => {
      // A stopped process must end before its folder is deleted.
      if (child.pid === undefined) reject(error);
    });
    child.on('close', (code) => resolve({ code, ...said }));
    if (child.pid !== undefined) lower(child.pid);
  });
}

/** At the lowest priority it would get nothing at all on a busy machine, where an operator needs it most. */
function lower(pid: number): void {
  try {
    setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // The process has already ended, or the system has no such file.
  }
}
