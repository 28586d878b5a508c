/**
 * Runs several processes of one program that share a port (SO_REUSEPORT): starts them, replaces those that die, and
 * stops them. The owner of the pool defines the messages.
 *
 * node:cluster is not used: its primary accepts every connection and hands it over, so that a stall of the primary
 * stops everything. Without that feature it is the same fork with the same channel.
 */
import { type ChildProcess, fork } from 'node:child_process';
import type { Clock, Millis } from './clock.ts';
import { RestartPacing } from './restart-pacing.ts';

export interface PoolLog {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

interface WorkerPoolOptions<Message> {
  readonly main: string;
  readonly args: readonly string[];
  readonly execArgv: readonly string[];
  /** Called for each worker, so that later ones can use what the first has found out, such as a free port. */
  readonly env: () => Readonly<Record<string, string | undefined>>;
  readonly workers: number;
  readonly clock: Clock;
  /** A worker that is not ready in time is killed. null: no limit. */
  readonly startTimeoutMs: Millis | null;
  readonly endTimeoutMs: Millis;
  readonly log: PoolLog;
  /** @returns whether the message says that the worker is ready */
  readonly onMessage: (worker: ChildProcess, message: Message) => boolean;
  readonly onEnded: (worker: ChildProcess) => void;
}

/** A worker ended before it was ready. The reason is on stderr, from the worker or from the log. */
export class WorkerStartError extends Error {}

/** How often the log says that a worker is not ready yet. */
const STILL_STARTING_MS: Millis = 30_000;
/** After so many ends in a row the log reports a crash loop. */
const CRASH_LOOP_ENDS = 3;

interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class WorkerPool<Message> {
  readonly #options: WorkerPoolOptions<Message>;
  readonly #children = new Set<ChildProcess>();
  readonly #ready = new Set<ChildProcess>();
  #restarts = 0;
  #stopping = false;

  constructor(options: WorkerPoolOptions<Message>) {
    this.#options = options;
  }

  get ready(): ReadonlySet<ChildProcess> {
    return this.#ready;
  }

  get restarts(): number {
    return this.#restarts;
  }

  get isStopping(): boolean {
    return this.#stopping;
  }

  /** Resolves when all are ready. @throws WorkerStartError, or the error of fork */
  async start(): Promise<void> {
    const { clock, workers } = this.#options;
    const pacings = Array.from({ length: workers }, () => new RestartPacing(clock));
    const [first, ...others] = pacings.map((pacing) => () => this.#startWorker(pacing));
    // The first worker starts alone: the others use what it finds out, and a common problem is reported once.
    await first?.();
    await Promise.all(others.map((start) => start()));
  }

  /** Resolves when all have ended. Each may finish its work within the time limit. */
  async close(): Promise<void> {
    this.#stopping = true;
    await Promise.all([...this.#children].map((worker) => this.#end(worker)));
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

  #startWorker(pacing: RestartPacing): Promise<void> {
    const { main, args, execArgv, env, startTimeoutMs, log, onMessage } = this.#options;
    if (this.#stopping) return Promise.reject(new WorkerStartError('the pool is stopping'));
    const worker = fork(main, args, {
      execArgv: [...execArgv],
      env: env(),
      // Ctrl-C goes to the whole process group, but only the supervisor should act on it.
      detached: true,
    });
    this.#children.add(worker);
    return new Promise<void>((resolve, reject) => {
      const starting = startTimeoutMs === null ? undefined : this.#watchStart(worker, startTimeoutMs);
      worker.on('error', (error) => {
        if (worker.pid !== undefined) {
          log.warn({ reason: error.message }, 'a worker cannot be reached');
          return;
        }
        clearInterval(starting);
        this.#children.delete(worker);
        reject(error);
      });
      worker.once('exit', (code, signal) => {
        clearInterval(starting);
        this.#children.delete(worker);
        if (this.#ready.delete(worker)) this.#onEnded(worker, pacing, { code, signal });
        else {
          if (signal !== null && !this.#stopping) {
            log.error({ pid: worker.pid, signal }, 'a worker was ended by a signal before it was ready');
          }
          reject(new WorkerStartError('a worker could not start'));
        }
      });
      worker.on('message', (message: Message) => {
        if (!onMessage(worker, message)) return;
        clearInterval(starting);
        this.#ready.add(worker);
        resolve();
      });
    });
  }

  /** Counts ticks instead of comparing times, so that a suspended machine does not count. */
  #watchStart(worker: ChildProcess, startTimeoutMs: Millis): NodeJS.Timeout {
    const { log } = this.#options;
    const { pid } = worker;
    const tickMs = Math.min(STILL_STARTING_MS, startTimeoutMs);
    let waitedMs = 0;
    const timer = setInterval(() => {
      waitedMs += tickMs;
      if (waitedMs < startTimeoutMs) {
        log.warn({ pid }, `a worker is not ready after ${waitedMs / 1000} s and gets more time`);
        return;
      }
      clearInterval(timer);
      log.error({ pid }, `a worker was not ready after ${waitedMs / 1000} s and was killed`);
      worker.kill('SIGKILL');
    }, tickMs);
    return timer;
  }

  #onEnded(worker: ChildProcess, pacing: RestartPacing, how: Ending): void {
    this.#options.onEnded(worker);
    if (this.#stopping) return;
    this.#options.log.error(how, 'a worker ended and is replaced');
    this.#replace(pacing);
  }

  #replace(pacing: RestartPacing): void {
    const { log } = this.#options;
    const { delayMs, endsInRow } = pacing.ended();
    if (endsInRow >= CRASH_LOOP_ENDS) {
      log.error({ endsInRow, againInMs: delayMs }, 'a worker ends repeatedly; the lines above may say why');
    }
    setTimeout(() => {
      if (this.#stopping) return;
      this.#restarts++;
      this.#startWorker(pacing).catch((error: Error) => {
        if (this.#stopping) return;
        log.error({ reason: error.message }, 'the replacement of a worker could not start');
        // Keep trying, or the pool would stay one worker short.
        this.#replace(pacing);
      });
    }, delayMs);
  }
}
