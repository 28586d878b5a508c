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
import { RestartPacing } from './restart-pacing.ts';
import { LOST_TICKS, SIGN_OF_LIFE_MS, SILENT_TICKS, SignsOfLife } from './signs-of-life.ts';

interface PoolLog {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The program of the workers, and the address to listen on. */
export interface WorkerProgram {
  readonly main: string;
  readonly execArgv: readonly string[];
  readonly workers: number;
  readonly host: string;
  /** 0 lets the first worker choose a free port. */
  readonly port: number;
  /** Whether other programs may listen on the same port. */
  readonly reusePort?: boolean;
  readonly clock: Clock;
  readonly log: PoolLog;
}

interface WorkerPoolOptions<Message> extends WorkerProgram {
  readonly env: (port: number) => Readonly<Record<string, string | undefined>>;
  /** A worker that is not ready in time is killed. */
  readonly startTimeoutMs: Millis;
  readonly endTimeoutMs: Millis;
  /** Interval in which signs of life are counted. */
  readonly signOfLifeMs?: Millis;
  /** @returns the port if the message says that the worker is ready, otherwise null */
  readonly onMessage: (worker: ChildProcess, message: Message) => number | null;
  readonly onEnded: (worker: ChildProcess) => void;
}

/** A worker ended before it was ready. The reason is on stderr, from the worker or from the log. */
export class WorkerStartError extends Error {}

/** Interval of the log line for a worker that is not ready yet. */
const STILL_STARTING_MS: Millis = 30_000;
/** Number of ends in a row after which the log reports a crash loop. */
const CRASH_LOOP_ENDS = 3;

interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class WorkerPool<Message> {
  readonly #options: WorkerPoolOptions<Message>;
  readonly #children = new Set<ChildProcess>();
  readonly #ready = new Set<ChildProcess>();
  #port: number;
  #restarts = 0;
  #stopping = false;
  readonly #signs: SignsOfLife<ChildProcess>;
  #ticks: NodeJS.Timeout | undefined;

  constructor(options: WorkerPoolOptions<Message>) {
    this.#options = options;
    this.#port = options.port;
    const { log } = options;
    this.#signs = new SignsOfLife({
      onSilent: ({ pid }) => log.warn({ pid }, `a worker gives no sign of life for ${SILENT_TICKS} s`),
      onHeard: ({ pid }) => log.warn({ pid }, 'the worker gives signs of life again'),
      onLost: (worker) => {
        log.error({ pid: worker.pid }, `a worker gave no sign of life for ${LOST_TICKS} s and is killed`);
        // Also ends a process that is stopped.
        worker.kill('SIGKILL');
      },
    });
  }

  get ready(): ReadonlySet<ChildProcess> {
    return this.#ready;
  }

  get port(): number {
    return this.#port;
  }

  get restarts(): number {
    return this.#restarts;
  }

  get isStopping(): boolean {
    return this.#stopping;
  }

  /** Whether a worker hangs. The kernel still gives it connections. */
  get hasSilent(): boolean {
    return this.#signs.isSilent;
  }

  /** Resolves when all are ready. @throws WorkerStartError, or the error of fork or, if the port is taken, of listen */
  async start(): Promise<void> {
    const { clock, workers, host, port, reusePort = false, signOfLifeMs = SIGN_OF_LIFE_MS } = this.#options;
    this.#ticks = setInterval(() => this.#signs.tick(), signOfLifeMs);
    if (port !== 0 && !reusePort) await assertFree(host, port);
    const pacings = Array.from({ length: workers }, () => new RestartPacing(clock));
    const [first, ...others] = pacings.map((pacing) => () => this.#startWorker(pacing));
    // The first worker starts alone: the others use its results, and a common problem is reported once.
    await first?.();
    await Promise.all(others.map((start) => start()));
  }

  /** Resolves when all have ended. Each may finish its work within the time limit. */
  async close(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#ticks);
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
    const { main, execArgv, env, startTimeoutMs, log, onMessage } = this.#options;
    if (this.#stopping) return Promise.reject(new WorkerStartError('the pool is stopping'));
    const worker = fork(main, ['--worker'], {
      execArgv: [...execArgv],
      env: env(this.#port),
      // Ctrl-C goes to the whole process group, but only the supervisor should act on it.
      detached: true,
    });
    this.#children.add(worker);
    return new Promise<void>((resolve, reject) => {
      const starting = this.#watchStart(worker, startTimeoutMs);
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
        this.#signs.forget(worker);
        if (this.#ready.delete(worker)) this.#onEnded(worker, pacing, { code, signal });
        else {
          if (signal !== null && !this.#stopping) {
            log.error({ pid: worker.pid, signal }, 'a worker was ended by a signal before it was ready');
          }
          reject(new WorkerStartError('a worker could not start'));
        }
      });
      worker.on('message', (message: Message) => {
        if (this.#ready.has(worker)) this.#signs.heard(worker);
        const port = onMessage(worker, message);
        if (port === null) return;
        this.#signs.heard(worker);
        this.#port = port;
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
        // Keep trying. Otherwise one worker would be missing for good.
        this.#replace(pacing);
      });
    }, delayMs);
  }
}
