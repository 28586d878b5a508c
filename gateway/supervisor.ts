/**
 * Several processes on one public port: the kernel spreads connections over them (SO_REUSEPORT), the shared store keeps
 * their limits exact. The supervisor carries no traffic: it starts the workers, replaces one that dies, adds up their
 * numbers, and passes signals on.
 *
 * Not node:cluster: its primary accepts every connection and hands it over, one more process on the way of each and one
 * whose stall stops all; without that it is the same fork with the same channel as here.
 */
import { type ChildProcess, fork } from 'node:child_process';
import type { Logger } from 'pino';
import type { Clock, Millis } from '#shared/clock.ts';
import type { ProcessReport } from './admin/top.ts';
import { type Family, families, sum } from './exposition.ts';
import { assertFree } from './listener.ts';
import { counter, gauge } from './metrics.ts';
import { RestartPacing } from './restart-pacing.ts';

/** What a worker tells its supervisor. */
export type WorkerMessage =
  | { readonly type: 'ready'; readonly port: number; readonly policies: number }
  | ({
      readonly type: 'state';
      /** Of the question; 0 when unasked. */
      readonly id: number;
      readonly families: readonly Family[];
    } & ProcessReport);

type State = Extract<WorkerMessage, { type: 'state' }>;

/** What a supervisor asks its worker. */
export interface WorkerQuestion {
  readonly type: 'state';
  readonly id: number;
  /** Somebody looks who is denied most. */
  readonly isWatching: boolean;
}

export interface SupervisorOptions {
  readonly main: string;
  readonly execArgv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly workers: number;
  readonly host: string;
  readonly port: number;
  /** Another gateway may already listen on the port. */
  readonly reusePort: boolean;
  readonly clock: Clock;
  /** How long a worker may take for its requests in flight. */
  readonly drainTimeoutMs: Millis;
  readonly log: Logger;
}

/** A worker ended before it was ready; it has said why on stderr itself. */
export class WorkerStartError extends Error {}

/** How often a worker says unasked what it has counted: what is lost when it dies. */
export const STATE_INTERVAL_MS: Millis = 1000;
/** So many in a row is a crash loop, and worth a word of its own. */
const CRASH_LOOP_ENDS = 3;
/** For a worker to be ready; then it hangs and is killed. */
const START_TIMEOUT_MS: Millis = 30_000;
/** For a worker to end after its requests have; then it hangs and is killed. */
const END_TIMEOUT_MS: Millis = 5000;
const ANSWER_TIMEOUT_MS: Millis = 2000;

export class Supervisor {
  readonly #options: SupervisorOptions;
  /** Those that were started and have not ended. */
  readonly #children = new Set<ChildProcess>();
  /** Those of them that are ready. */
  readonly #workers = new Set<ChildProcess>();
  /** What each of them last said of itself. */
  readonly #families = new Map<ChildProcess, readonly Family[]>();
  /** What those that ended had counted: a sum must not fall because a worker died. */
  #departed: Promise<readonly Family[]> = Promise.resolve([]);
  #restarts = 0;
  readonly #waiting = new Map<number, (state: State) => void>();
  #question = 0;
  #stopping = false;
  #port: number;
  policies = 0;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#port = options.port;
  }

  get port(): number {
    return this.#port;
  }

  /** @throws when the port is taken, or WorkerStartError */
  async start(): Promise<void> {
    const { host, reusePort, workers } = this.#options;
    // Workers share the port, so the kernel would also let a stranger's workers share it: ask for it alone once.
    if (this.#port !== 0 && !reusePort) await assertFree(host, this.#port);
    const pacings = Array.from({ length: workers }, () => new RestartPacing(this.#options.clock));
    const [first, ...others] = pacings.map((pacing) => () => this.#startWorker(pacing));
    // The first one finds the port, and what keeps all of them from starting is said once.
    await first?.();
    await Promise.all(others.map((start) => start()));
  }

  ready(): boolean {
    return !this.#stopping && this.#workers.size > 0;
  }

  /**
   * Of each process. A worker that does not answer in time counts with what it said last, so that no counter falls and
   * rises again.
   */
  async families(): Promise<readonly (readonly Family[])[]> {
    await this.#ask();
    const own = families([
      gauge('floodgate_workers', 'Processes that are ready.', this.#workers.size),
      counter('floodgate_worker_restarts_total', 'Workers that ended and were replaced.', this.#restarts),
    ]);
    return [own, await this.#departed, ...this.#families.values()];
  }

  async storeAvailable(): Promise<boolean> {
    return (await this.#ask()).every(({ storeAvailable }) => storeAvailable);
  }

  /** Of each worker that answers; those who are denied most are counted from now on. */
  processes(): Promise<readonly ProcessReport[]> {
    return this.#ask(true);
  }

  reload(): void {
    for (const worker of this.#workers) worker.kill('SIGHUP');
  }

  async close(): Promise<void> {
    this.#stopping = true;
    await Promise.all([...this.#children].map((worker) => this.#end(worker)));
  }

  #end(worker: ChildProcess): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => worker.kill('SIGKILL'), this.#options.drainTimeoutMs + END_TIMEOUT_MS);
      worker.once('exit', () => {
        clearTimeout(timer);
        resolve();
      });
      worker.kill('SIGTERM');
    });
  }

  #startWorker(pacing: RestartPacing): Promise<void> {
    const { main, execArgv, env, log } = this.#options;
    const worker = fork(main, ['--worker'], {
      execArgv: [...execArgv],
      env: { ...env, GATEWAY_PORT: String(this.#port) },
      // A Ctrl-C reaches the whole process group; only the supervisor shall act on it.
      detached: true,
    });
    this.#children.add(worker);
    return new Promise<void>((resolve, reject) => {
      const hangs = setTimeout(() => worker.kill('SIGKILL'), START_TIMEOUT_MS);
      worker.on('error', (error) => {
        if (worker.pid !== undefined) {
          log.warn({ reason: error.message }, 'a worker cannot be reached');
          return;
        }
        clearTimeout(hangs);
        this.#children.delete(worker);
        reject(error);
      });
      worker.once('exit', (code, signal) => {
        clearTimeout(hangs);
        this.#children.delete(worker);
        if (this.#workers.delete(worker)) this.#onEnded(worker, pacing, { code, signal });
        else reject(new WorkerStartError('a worker could not start'));
      });
      worker.on('message', (message: WorkerMessage) => {
        if (message.type === 'state') {
          // One that has ended is among the departed already.
          if (this.#workers.has(worker)) this.#families.set(worker, message.families);
          this.#waiting.get(message.id)?.(message);
          return;
        }
        clearTimeout(hangs);
        this.#port = message.port;
        this.policies = message.policies;
        this.#workers.add(worker);
        resolve();
      });
    });
  }

  #onEnded(
    worker: ChildProcess,
    pacing: RestartPacing,
    how: { code: number | null; signal: NodeJS.Signals | null },
  ): void {
    const counted = (this.#families.get(worker) ?? []).filter(({ type }) => type !== 'gauge');
    this.#departed = this.#departed.then((departed) => sum([departed, counted]));
    this.#families.delete(worker);
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

  /** What the workers say of themselves; one that does not answer in time is left out. */
  async #ask(isWatching = false): Promise<State[]> {
    const answers = [...this.#workers].map(async (worker): Promise<State | null> => {
      const id = ++this.#question;
      let timer: NodeJS.Timeout | undefined;
      const state = await new Promise<State | null>((resolve) => {
        this.#waiting.set(id, resolve);
        timer = setTimeout(resolve, ANSWER_TIMEOUT_MS, null);
        // One that is just ending can no longer be asked; its 'exit' says the rest.
        worker.send(
          { type: 'state', id, isWatching } satisfies WorkerQuestion,
          (error) => error && resolve(null),
        );
      });
      clearTimeout(timer);
      this.#waiting.delete(id);
      return state;
    });
    return (await Promise.all(answers)).filter((answer) => answer !== null);
  }
}
