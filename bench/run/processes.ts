/** Starts processes. They always end together with the bench. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { accepts } from '#test/support/ports.ts';
import { until } from '#test/support/until.ts';
import { PATH } from './programs.ts';

const STOP_TIMEOUT_MS = 10_000;
const TAIL_CHARS = 4000;

export interface StartOptions {
  readonly port?: number;
  /** Output of the process that shows that it is ready. Default: it is ready when its port accepts connections. */
  readonly readyText?: string;
  /** Added to a minimal environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Receives what a Node process sends to its parent. */
  readonly onMessage?: (message: unknown) => void;
}

export interface Started {
  readonly pid: number;
  /** How the process ended. null while it runs. */
  ending(): string | null;
  /** The last 4,000 characters of its output. */
  output(): string;
  /** Sends the signal and waits for the end. A process that ignores the signal is killed. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export class Processes {
  readonly #children = new Set<ChildProcess>();
  /** Folder for configuration files and sockets. It is removed at the end. */
  readonly directory = mkdtempSync(join(tmpdir(), 'floodgate-bench-'));

  constructor() {
    process.once('exit', () => {
      for (const child of this.#children) child.kill('SIGKILL');
      rmSync(this.directory, { recursive: true, force: true });
    });
  }

  /** @throws Error with the last output of the program if it ends before it is ready */
  async start(
    name: string,
    command: string,
    args: readonly string[],
    options: StartOptions = {},
  ): Promise<Started> {
    const { port, readyText, onMessage } = options;
    const child = spawn(command, args, {
      env: { PATH, HOME: process.env.HOME, ...options.env },
      cwd: options.cwd ?? this.directory,
      stdio: ['ignore', 'pipe', 'pipe', ...(onMessage === undefined ? [] : (['ipc'] as const))],
    });
    this.#children.add(child);
    let tail = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        tail = (tail + chunk.toString()).slice(-TAIL_CHARS);
      });
    }
    if (onMessage !== undefined) child.on('message', onMessage);
    let failure: string | null = null;
    const gone = Promise.withResolvers<void>();
    const fail = (reason: string): void => {
      failure ??= reason;
      gone.resolve();
    };
    child.once('error', (error) => fail(error.message));
    child.once('exit', (code, signal) => {
      this.#children.delete(child);
      fail(`it ended with ${signal ?? `exit code ${code}`}`);
    });
    const isReady = async (): Promise<boolean> =>
      readyText === undefined ? port === undefined || (await accepts(port)) : tail.includes(readyText);
    const output = (): string => `${failure ?? ''}\n${tail.trim()}`;
    await until(isReady, `${name} is ready`, { output, ended: () => gone.promise });
    if (child.pid === undefined) throw new Error(`${name} did not start: ${failure ?? 'no process'}`);
    const { pid } = child;
    return { pid, ending: () => failure, output: () => tail, stop: (signal) => end(child, signal) };
  }

  /** Starts a script with the Node that runs the bench. */
  node(name: string, args: readonly string[], options: StartOptions = {}): Promise<Started> {
    return this.start(name, process.execPath, args, options);
  }

  /** Writes a file that is removed at the end of the bench. @returns its path */
  file(name: string, text: string): string {
    const path = join(this.directory, name);
    writeFileSync(path, text);
    return path;
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#children].map((child) => end(child)));
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
