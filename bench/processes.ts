/** Processes that the bench started: known by pid, waited for, and ended with it, whatever ends it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { accepts } from '#test/support/ports.ts';

const START_TIMEOUT_MS = 20_000;
const STOP_TIMEOUT_MS = 5000;
const TAIL_CHARS = 4000;

export interface Started {
  readonly pid: number;
  readonly name: string;
  /** null while it runs, else how it ended. */
  ending(): string | null;
  /** The last of what it said. */
  output(): string;
  /** Asks it to end, and insists after a while; `SIGKILL` does not ask. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export class Processes {
  readonly #children = new Set<ChildProcess>();
  /** For configuration files and sockets; gone at the end. */
  readonly directory = mkdtempSync(join(tmpdir(), 'floodgate-bench-'));

  /** @throws with the program's own last words when it ends before its port answers */
  async start(
    name: string,
    command: string,
    args: readonly string[],
    options: {
      readonly port?: number;
      /** What it says once it is ready, where an open port is not the whole truth: it may open one to try it. */
      readonly readyText?: string;
      readonly env?: Record<string, string>;
      readonly cwd?: string;
    },
  ): Promise<Started> {
    const child = spawn(command, args, {
      env: { ...process.env, ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#children.add(child);
    let tail = '';
    const keep = (chunk: Buffer): void => {
      tail = (tail + chunk.toString()).slice(-TAIL_CHARS);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    let failure: string | null = null;
    child.once('error', (error) => {
      failure = error.message;
    });
    child.once('exit', (code, signal) => {
      this.#children.delete(child);
      failure ??= `it ended with ${signal ?? `exit code ${code}`}`;
    });
    const deadline = Date.now() + START_TIMEOUT_MS;
    const isReady = async (): Promise<boolean> =>
      options.readyText === undefined
        ? options.port === undefined || (await accepts(options.port))
        : tail.includes(options.readyText);
    while (!(await isReady())) {
      if (failure !== null) throw new Error(`${name} did not start: ${failure}\n${tail.trim()}`);
      if (Date.now() > deadline) {
        await end(child);
        throw new Error(`${name} was not ready in time\n${tail.trim()}`);
      }
      await sleep(20);
    }
    if (child.pid === undefined) throw new Error(`${name} did not start: ${failure ?? 'no process'}`);
    return {
      pid: child.pid,
      name,
      ending: () => failure,
      output: () => tail,
      stop: (signal) => end(child, signal),
    };
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#children].map((child) => end(child)));
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** For the last moment of the process, when nothing can be waited for any more. */
  killNow(): void {
    for (const child of this.#children) child.kill('SIGKILL');
    rmSync(this.directory, { recursive: true, force: true });
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  await gone;
  clearTimeout(timer);
}
