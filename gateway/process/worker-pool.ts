/**
 * Runs several processes of one program that share a port (SO_REUSEPORT): starts them, replaces those that die or hang,
 * and stops them. The owner of the pool defines the messages. Each of them is a sign of life of its worker.
 *
 * node:cluster is not used: its primary accepts every connection and hands it over, so that a stall of the primary
 * stops everything. Without that feature it is the same fork with the same channel.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { assertFree } from '#shared/assert-free.ts';
import type { Clock, Millis } from '#shared/clock.ts';

/** The program of the workers, and the address to listen on. */
export interface WorkerProgram {
  readonly main: string;
  readonly execArgv: readonly string[];
  readonly workers: number;
  readonly host: string;
  /** 0 lets the first worker choose a free port. */
  readonly port: number;
  /** Whether other programs may listen on the same port. */
  readonly reusePort: boolean;
  readonly clock: Clock;
  readonly log: Record<'warn' | 'error', (fields: object, message: string) => void>;
}

interface WorkerPoolOptions<Message> extends WorkerProgram {
  readonly env: (port: number) => Readonly<Record<string, string | undefined>>;
  readonly endTimeoutMs: Millis;
  /** Interval in which signs of life are counted. */
  readonly tickMs?: Millis;
  /** @returns the port if the message says that the worker is ready, otherwise null */
  readonly onMessage: (worker: ChildProcess, message: Message) => number | null;
  readonly onEnded: (worker: ChildProcess) => void;
}

/** A worker ended before it was ready. The reason is on stderr, from the worker or from the log. */
export class WorkerStartError extends Error {}

/** Interval in which signs of life are counted. Each worker sends at least one message in two of them. */
export const TICK_MS: Millis = 1000;
/** After this number of ticks without a sign of life a worker hangs, and after the second it is killed. */
const SILENT_TICKS = 10;
const LOST_TICKS = 30;
/** The same for a worker that is not ready yet. The first start on a slow machine may take minutes. */
const STARTING_TICKS = 30;
const START_TICKS_MAX = 300;
/** Number of ends in a row after which the log reports a crash loop. */
const CRASH_LOOP_ENDS = 3;
const DELAY_MS: Millis = 1000;
const DELAY_MS_MAX: Millis = 30_000;
/** If a worker ran this long, it probably ended for another reason than the previous one. */
const CALM_MS: Millis = 60_000;

/** @returns how long to wait before a worker is replaced: not at all at first, then longer with each end in a row */
export function replacementDelayMs(endsInRow: number): Millis {
  return endsInRow === 1 ? 0 : Math.min(DELAY_MS * 2 ** (endsInRow - 2), DELAY_MS_MAX);
}

interface Watched {
  isReady: boolean;
  /** Ticks since the last sign of life. Unlike a time, they do not grow while the machine is suspended. */
  ticks: number;
}

export class WorkerPool<Message> {
  readonly #options: WorkerPoolOptions<Message>;
  readonly #workers = new Map<ChildProcess, Watched>();
  port: number;
  restarts = 0;
  isStopping = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: WorkerPoolOptions<Message>) {
    this.#options = options;
    this.port = options.port;
  }

  get ready(): ChildProcess[] {
    return [...this.#workers].flatMap(([worker, { isReady }]) => (isReady ? worker : []));
  }

  /** Whether a worker hangs. The kernel still gives it connections. */
  get hasSilent(): boolean {
    return this.#workers.values().some(({ isReady, ticks }) => isReady && ticks >= SILENT_TICKS);
  }

  /** Resolves when all are ready. @throws WorkerStartError, or the error of fork or, if the port is taken, of listen */
  async start(): Promise<void> {
    const { workers, host, port, reusePort, tickMs = TICK_MS } = this.#options;
    this.#timer = setInterval(() => this.#tick(), tickMs);
    if (port !== 0 && !reusePort) await assertFree(host, port);
    // The first worker starts alone: the others use its results, and a common problem is reported once.
    await this.#startWorker(0);
    await Promise.all(Array.from({ length: workers - 1 }, () => this.#startWorker(0)));
  }

  /** Resolves when all have ended. Each may finish its work within the time limit. */
  async close(): Promise<void> {
    this.isStopping = true;
    clearInterval(this.#timer);
    await Promise.all([...this.#workers.keys()].map((worker) => this.#end(worker)));
  }

  #end(worker: ChildProcess): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => worker.kill('SIGKILL'), this.#options.endTimeoutMs);
      worker.once('exit', () => {
        clearTimeout(timer);
        resolve();
      });
      worker.kill('SIGTERM');
    });
  }

  #tick(): void {
    const { log } = this.#options;
    for (const [worker, watched] of this.#workers) {
      const { pid } = worker;
      const ticks = ++watched.ticks;
      const [warnTicks, killTicks] = watched.isReady
        ? [SILENT_TICKS, LOST_TICKS]
        : [STARTING_TICKS, START_TICKS_MAX];
      const what = watched.isReady ? 'a worker gives no sign of life' : 'a worker is not ready';
      if (ticks === killTicks) {
        log.error({ pid }, `${what} for ${ticks} s and is killed`);
        // Also ends a process that is stopped.
        worker.kill('SIGKILL');
      } else if (ticks < killTicks && ticks % warnTicks === 0) log.warn({ pid }, `${what} for ${ticks} s`);
    }
  }

  /** @param endsInRow how often workers before it have ended soon after their start */
  #startWorker(endsInRow: number): Promise<void> {
    const { main, execArgv, env, log, clock } = this.#options;
    if (this.isStopping) return Promise.reject(new WorkerStartError('the pool is stopping'));
    const worker = fork(main, ['--worker'], {
      execArgv: [...execArgv],
      env: env(this.port),
      // Ctrl-C goes to the whole process group, but only the supervisor should act on it.
      detached: true,
    });
    const startedAt = clock();
    const watched: Watched = { isReady: false, ticks: 0 };
    this.#workers.set(worker, watched);
    return new Promise<void>((resolve, reject) => {
      worker.on('error', (error) => {
        if (worker.pid !== undefined) {
          log.warn({ reason: error.message }, 'a worker cannot be reached');
          return;
        }
        this.#workers.delete(worker);
        reject(error);
      });
      worker.once('exit', (code, signal) => {
        this.#workers.delete(worker);
        if (watched.isReady) {
          this.#options.onEnded(worker);
          if (this.isStopping) return;
          log.error({ code, signal }, 'a worker ended and is replaced');
          this.#replace(clock() - startedAt > CALM_MS ? 1 : endsInRow + 1);
          return;
        }
        if (signal !== null && !this.isStopping)
          log.error({ pid: worker.pid, signal }, 'a worker was ended by a signal before it was ready');
        reject(new WorkerStartError('a worker could not start'));
      });
      worker.on('message', (message: Message) => {
        if (this.#onMessage(worker, watched, message)) resolve();
      });
    });
  }

  /** @returns whether the worker has become ready */
  #onMessage(worker: ChildProcess, watched: Watched, message: Message): boolean {
    const { log, onMessage } = this.#options;
    if (watched.isReady) {
      if (watched.ticks >= SILENT_TICKS)
        log.warn({ pid: worker.pid }, 'the worker gives signs of life again');
      watched.ticks = 0;
    }
    const port = onMessage(worker, message);
    if (port === null) return false;
    this.port = port;
    watched.isReady = true;
    watched.ticks = 0;
    return true;
  }

  #replace(endsInRow: number): void {
    const { log } = this.#options;
    const delayMs = replacementDelayMs(endsInRow);
    if (endsInRow >= CRASH_LOOP_ENDS) {
      log.error({ endsInRow, againInMs: delayMs }, 'a worker ends repeatedly; the lines above may say why');
    }
    setTimeout(() => {
      if (this.isStopping) return;
      this.restarts++;
      this.#startWorker(endsInRow).catch((error: Error) => {
        if (this.isStopping) return;
        log.error({ reason: error.message }, 'the replacement of a worker could not start');
        // Keep trying. Otherwise one worker would be missing for good.
        this.#replace(endsInRow + 1);
      });
    }, delayMs);
  }
}
