/** Starts one of our programs as a process, and reads its output. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { makeFolder, removeFolder } from './temporary-folder.ts';
import { reportWhileWaiting } from './until.ts';

export const projectRoot = fileURLToPath(new URL('../..', import.meta.url));

export interface Started {
  readonly child: ChildProcess;
  /** Everything written to stdout and stderr so far. */
  output(): string;
  /** Resolves once the output matches; rejects when the process ends first. */
  until(pattern: RegExp): Promise<RegExpMatchArray>;
  /** Sends the signal and waits for the end. Resolves with the exit code, null when a signal killed it. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Waits for the end without sending anything. */
  ended(): Promise<number | null>;
}

const { NODE_COMPILE_CACHE: cache } = process.env;
/** Environment of a process: most of a start is compiling, so all starts share a compile cache. */
export const compileCache: Readonly<Record<string, string>> =
  cache === undefined ? {} : { NODE_COMPILE_CACHE: cache };

let uploads: string | null = null;

/** Returns a temporary folder instead of the default, which is in the project. */
function uploadsFolder(): string {
  if (uploads === null) {
    const folder = makeFolder();
    process.once('exit', () => removeFolder(folder));
    uploads = folder;
  }
  return uploads;
}

/**
 * @param args the program and its arguments, e.g. ['gateway/main.ts']; run by the Node that runs the test
 * @param env added to a minimal environment: nothing of the caller's settings leaks in
 */
export function start(args: readonly string[], env: Record<string, string> = {}, cwd = projectRoot): Started {
  return startProgram([process.execPath, ...args], env, cwd);
}

/** Starts another program, such as a shell that starts one of ours. */
export function startProgram(
  [program = '', ...args]: readonly string[],
  env: Record<string, string>,
  cwd = projectRoot,
): Started {
  const child = spawn(program, args, {
    cwd,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: process.env.HOME ?? '',
      ...compileCache,
      ...(cwd === projectRoot ? { STORAGE_PATH: uploadsFolder(), GATEWAY_POLICIES: 'policies.yaml' } : {}),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  const listeners = new Set<() => void>();
  const collect = (chunk: Buffer): void => {
    text += chunk.toString();
    for (const listener of listeners) listener();
  };
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  const closed = once(child, 'close').then(() => child.exitCode);

  return {
    child,
    output: () => text,
    until(pattern) {
      return new Promise((resolve, reject) => {
        const finish = (error?: Error): void => {
          stopReports();
          listeners.delete(check);
          if (error) reject(error);
        };
        const check = (): void => {
          const found = text.match(pattern);
          if (found === null) return;
          finish();
          resolve(found);
        };
        const stopReports = reportWhileWaiting(() => `for ${pattern} in the output:\n${text}`);
        listeners.add(check);
        closed.then(() => {
          check();
          finish(new Error(`Ended with ${child.exitCode} before ${pattern}. Output:\n${text}`));
        });
        check();
      });
    },
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      return closed;
    },
    ended: () => closed,
  };
}
