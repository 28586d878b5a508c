/**
 * Several processes on one public port: the kernel spreads connections over them, the shared store keeps their limits
 * exact. The supervisor carries no traffic: it has the workers started and replaced, adds up their numbers, and passes
 * signals on.
 */
import type { ChildProcess } from 'node:child_process';
import type { Logger } from 'pino';
import { type Family, families, sum } from '#gateway/observe/metrics/exposition.ts';
import { counter, gauge } from '#gateway/observe/metrics/metrics.ts';
import type { ProcessReport } from '#gateway/operate/admin/top.ts';
import { assertFree } from '#shared/assert-free.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { WorkerPool } from '#shared/worker-pool.ts';

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

/** How often a worker says unasked what it has counted: what is lost when it dies. */
export const STATE_INTERVAL_MS: Millis = 1000;
/** For a worker to be ready; then it hangs and is killed. The first start on a slow machine may take minutes. */
const START_TIMEOUT_MS: Millis = 300_000;
/** For a worker to end after its requests have; then it hangs and is killed. */
const END_TIMEOUT_MS: Millis = 5000;
const ANSWER_TIMEOUT_MS: Millis = 2000;

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #pool: WorkerPool<WorkerMessage>;
  /** What each worker last said of itself. */
  readonly #families = new Map<ChildProcess, readonly Family[]>();
  /** What those that ended had counted: a sum must not fall because a worker died. */
  #departed: Promise<readonly Family[]> = Promise.resolve([]);
  readonly #waiting = new Map<number, (state: State) => void>();
  #question = 0;
  #port: number;
  policies = 0;

  constructor(options: SupervisorOptions) {
    const { main, execArgv, env, workers, clock, drainTimeoutMs, log } = options;
    this.#options = options;
    this.#port = options.port;
    this.#pool = new WorkerPool({
      main,
      args: ['--worker'],
      execArgv,
      // The first one finds the port.
      env: () => ({ ...env, GATEWAY_PORT: String(this.#port) }),
      workers,
      clock,
      startTimeoutMs: START_TIMEOUT_MS,
      endTimeoutMs: drainTimeoutMs + END_TIMEOUT_MS,
      log,
      onMessage: (worker, message) => this.#onMessage(worker, message),
      onEnded: (worker) => this.#onEnded(worker),
    });
  }

  get port(): number {
    return this.#port;
  }

  /** @throws when the port is taken, or WorkerStartError */
  async start(): Promise<void> {
    const { host, reusePort } = this.#options;
    // Workers share the port, so the kernel would also let a stranger's workers share it: ask for it alone once.
    if (this.#port !== 0 && !reusePort) await assertFree(host, this.#port);
    await this.#pool.start();
  }

  ready(): boolean {
    return !this.#pool.isStopping && this.#pool.ready.size > 0;
  }

  /**
   * Of each process. A worker that does not answer in time counts with what it said last, so that no counter falls and
   * rises again.
   */
  async families(): Promise<readonly (readonly Family[])[]> {
    await this.#ask();
    const own = families([
      gauge('floodgate_workers', 'Processes that are ready.', this.#pool.ready.size),
      counter(
        'floodgate_worker_restarts_total',
        'Workers that ended and were replaced.',
        this.#pool.restarts,
      ),
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
    for (const worker of this.#pool.ready) worker.kill('SIGHUP');
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  #onMessage(worker: ChildProcess, message: WorkerMessage): boolean {
    if (message.type === 'state') {
      // One that has ended is among the departed already.
      if (this.#pool.ready.has(worker)) this.#families.set(worker, message.families);
      this.#waiting.get(message.id)?.(message);
      return false;
    }
    this.#port = message.port;
    this.policies = message.policies;
    return true;
  }

  #onEnded(worker: ChildProcess): void {
    const counted = (this.#families.get(worker) ?? []).filter(({ type }) => type !== 'gauge');
    this.#departed = this.#departed.then((departed) => sum([departed, counted]));
    this.#families.delete(worker);
  }

  /** What the workers say of themselves; one that does not answer in time is left out. */
  async #ask(isWatching = false): Promise<State[]> {
    const answers = [...this.#pool.ready].map(async (worker): Promise<State | null> => {
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
