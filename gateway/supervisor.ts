/**
 * Several processes on one public port: the kernel spreads connections over them (SO_REUSEPORT), the shared store keeps
 * their limits exact. The supervisor carries no traffic: it starts the workers, replaces one that dies, adds up their
 * numbers, and passes signals on.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { createServer } from 'node:net';
import type { Logger } from 'pino';
import type { Millis } from '#shared/clock.ts';
import { type Sample, sum } from './metrics.ts';

/** What a worker tells its supervisor. */
export type WorkerMessage =
  | { readonly type: 'ready'; readonly port: number; readonly policies: number }
  | {
      readonly type: 'state';
      readonly id: number;
      readonly samples: Sample[];
      readonly storeAvailable: boolean;
    };

type State = Extract<WorkerMessage, { type: 'state' }>;

interface Answer extends State {
  readonly worker: ChildProcess;
}

/** What a supervisor asks its worker. */
export interface WorkerQuestion {
  readonly type: 'state';
  readonly id: number;
}

export interface SupervisorOptions {
  readonly main: string;
  readonly execArgv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly workers: number;
  readonly host: string;
  readonly port: number;
  /** How long a worker may take for its requests in flight. */
  readonly drainTimeoutMs: Millis;
  readonly log: Logger;
}

/** A worker ended before it was ready; it has said why on stderr itself. */
export class WorkerStartError extends Error {}

/** Until a worker that ended is replaced; twice as long after each replacement that could not start either. */
const RESTART_DELAY_MS: Millis = 1000;
const RESTART_DELAY_MS_MAX: Millis = 30_000;
/** For a worker to end after its requests have; then it hangs and is killed. */
const END_TIMEOUT_MS: Millis = 5000;
const ANSWER_TIMEOUT_MS: Millis = 2000;

export class Supervisor {
  readonly #options: SupervisorOptions;
  /** Those that were started and have not ended. */
  readonly #children = new Set<ChildProcess>();
  /** Those of them that are ready. */
  readonly #workers = new Set<ChildProcess>();
  /** What each worker last said of itself. */
  readonly #samples = new Map<ChildProcess, readonly Sample[]>();
  /** What those that ended had counted: a sum must not fall because a worker died. */
  #departed: readonly Sample[] = [];
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
    // Workers share the port, so the kernel would also let a stranger's workers share it: ask for it alone once.
    if (this.#port !== 0) await assertFree(this.#options.host, this.#port);
    for (let i = 0; i < this.#options.workers; i++) await this.#startWorker();
  }

  ready(): boolean {
    return !this.#stopping && this.#workers.size > 0;
  }

  /** One that does not answer in time counts with what it said last, so that no counter falls and rises again. */
  async samples(): Promise<Sample[]> {
    for (const { worker, samples } of await this.#ask()) {
      if (this.#workers.has(worker)) this.#samples.set(worker, samples);
    }
    return sum([...this.#departed, ...[...this.#samples.values()].flat()]);
  }

  async storeAvailable(): Promise<boolean> {
    return (await this.#ask()).every(({ storeAvailable }) => storeAvailable);
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

  #startWorker(): Promise<void> {
    const { main, execArgv, env, log } = this.#options;
    const worker = fork(main, ['--worker'], {
      execArgv: [...execArgv],
      env: { ...env, GATEWAY_PORT: String(this.#port) },
      // A Ctrl-C reaches the whole process group; only the supervisor shall act on it.
      detached: true,
    });
    this.#children.add(worker);
    return new Promise<void>((resolve, reject) => {
      worker.on('error', (error) => {
        if (worker.pid !== undefined) {
          log.warn({ reason: error.message }, 'a worker cannot be reached');
          return;
        }
        this.#children.delete(worker);
        reject(error);
      });
      worker.once('exit', (code, signal) => {
        this.#children.delete(worker);
        if (!this.#workers.delete(worker)) reject(new WorkerStartError('a worker could not start'));
        else this.#onEnded(worker, { code, signal });
      });
      worker.on('message', (message: WorkerMessage) => {
        if (message.type === 'state') {
          this.#waiting.get(message.id)?.(message);
          return;
        }
        this.#port = message.port;
        this.policies = message.policies;
        this.#workers.add(worker);
        resolve();
      });
    });
  }

  #onEnded(worker: ChildProcess, how: { code: number | null; signal: NodeJS.Signals | null }): void {
    const counted = (this.#samples.get(worker) ?? []).filter(({ type }) => type === 'counter');
    this.#departed = sum([...this.#departed, ...counted]);
    this.#samples.delete(worker);
    if (this.#stopping) return;
    this.#options.log.error(how, 'a worker ended; another one takes its place');
    this.#replace(RESTART_DELAY_MS);
  }

  #replace(delayMs: Millis): void {
    setTimeout(() => {
      if (this.#stopping) return;
      this.#startWorker().catch((error: Error) => {
        // It may be the store that is away: what ended the worker must not keep its place empty for good.
        const againInMs = Math.min(2 * delayMs, RESTART_DELAY_MS_MAX);
        this.#options.log.error({ reason: error.message, againInMs }, 'no new worker yet');
        this.#replace(againInMs);
      });
    }, delayMs);
  }

  /** What the workers say of themselves; one that does not answer in time is left out. */
  async #ask(): Promise<Answer[]> {
    const answers = [...this.#workers].map(async (worker): Promise<Answer | null> => {
      const id = ++this.#question;
      let timer: NodeJS.Timeout | undefined;
      const state = await new Promise<State | null>((resolve) => {
        this.#waiting.set(id, resolve);
        timer = setTimeout(resolve, ANSWER_TIMEOUT_MS, null);
        // One that is just ending can no longer be asked; its 'exit' says the rest.
        worker.send({ type: 'state', id } satisfies WorkerQuestion, (error) => error && resolve(null));
      });
      clearTimeout(timer);
      this.#waiting.delete(id);
      return state && { worker, ...state };
    });
    return (await Promise.all(answers)).filter((answer) => answer !== null);
  }
}

function assertFree(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve()));
  });
}
