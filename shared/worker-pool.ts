/**
 * Several processes of one program, which share a port (SO_REUSEPORT): starts them, replaces one that dies, and ends them.
 * What they say to each other is the business of whoever has the pool.
 *
 * Not node:cluster: its primary accepts every connection and hands it over, one more process on the way of each and one
 * whose stall stops all; without that it is the same fork with the same channel as here.
 */
import { type ChildProcess, fork } from 'node:child_process';
import type { Clock, Millis } from './clock.ts';
import { RestartPacing } from './restart-pacing.ts';

export interface PoolLog {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface WorkerPoolOptions<Message> {
  readonly main: string;
  readonly args: readonly string[];
  readonly execArgv: readonly string[];
  /** Asked for each worker: later ones may be told what the first one found out. */
  readonly env: () => Readonly<Record<string, string | undefined>>;
  readonly workers: number;
  readonly clock: Clock;
  /** For a worker to be ready; then it hangs and is killed. null: as long as it takes. */
  readonly startTimeoutMs: Millis | null;
  /** For a worker that was told to end; then it hangs and is killed. */
  readonly endTimeoutMs: Millis;
  readonly log: PoolLog;
  /** @returns whether it says that the worker is ready */
  readonly onMessage: (worker: ChildProcess, message: Message) => boolean;
  /** One that was ready has ended. */
  readonly onEnded: (worker: ChildProcess) => void;
}

/** A worker ended before it was ready. Why is on stderr: it has said so itself, or the log does. */
export class WorkerStartError extends Error {}

/** How often the log says that a worker is not ready yet. */
const STILL_STARTING_MS: Millis = 30_000;
/** So many in a row is a crash loop, and worth a word of its own. */
const CRASH_LOOP_ENDS = 3;

interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class WorkerPool<Message> {
  readonly #options: WorkerPoolOptions<Message>;
  /** Those that were started and have not ended. */
  readonly #children = new Set<ChildProcess>();
  /** Those of them that are ready. */
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

  /** Resolves when all are ready. @throws WorkerStartError, or what keeps a process from being made */
  async start(): Promise<void> {
    const { clock, workers } = this.#options;
    const pacings = Array.from({ length: workers }, () => new RestartPacing(clock));
    const [first, ...others] = pacings.map((pacing) => () => this.#startWorker(pacing));
    // What the first one finds out is for all of them, and what keeps them from starting is said once.
    await first?.();
    await Promise.all(others.map((start) => start()));
  }

  /** Resolves when all have ended: each may take its time for what is under way, within a bound. */
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
    if (this.#stopping) return Promise.reject(new WorkerStartError('no worker is started any more'));
    const worker = fork(main, args, {
      execArgv: [...execArgv],
      env: env(),
      // A Ctrl-C reaches the whole process group; only the supervisor shall act on it.
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

  /** Time passes in ticks: that of a machine that stands still does not count. */
  #watchStart(worker: ChildProcess, startTimeoutMs: Millis): NodeJS.Timeout {
    const { log } = this.#options;
    const { pid } = worker;
    const tickMs = Math.min(STILL_STARTING_MS, startTimeoutMs);
    let waitedMs = 0;
    const timer = setInterval(() => {
      waitedMs += tickMs;
      if (waitedMs < startTimeoutMs) {
        log.warn({ pid }, `a worker is not ready after ${waitedMs / 1000} s; it is still waited for`);
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
    this.#options.log.error(how, 'a worker ended; another one takes its place');
    this.#replace(pacing);
  }

  #replace(pacing: RestartPacing): void {
    const { log } = this.#options;
    const { delayMs, endsInRow } = pacing.ended();
    if (endsInRow >= CRASH_LOOP_ENDS) {
      log.error(
        { endsInRow, againInMs: delayMs },
        'a worker ends again and again; the lines above may say why',
      );
    }
    setTimeout(() => {
      if (this.#stopping) return;
      this.#restarts++;
      this.#startWorker(pacing).catch((error: Error) => {
        if (this.#stopping) return;
        log.error({ reason: error.message }, 'no new worker yet');
        // What ended the worker must not keep its place empty for good.
        this.#replace(pacing);
      });
    }, delayMs);
  }
}
