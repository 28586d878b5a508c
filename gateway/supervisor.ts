/**
 * Several processes on one public port: the kernel spreads connections over them (SO_REUSEPORT), the shared store keeps
 * their limits exact. The supervisor carries no traffic: it starts the workers, replaces one that dies, adds up their
 * numbers, and passes signals on.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Logger } from 'pino';
import type { Millis } from './clock.ts';
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
  readonly log: Logger;
}

/** A worker ended before it was ready; it has said why on stderr itself. */
export class WorkerStartError extends Error {}

const RESTART_DELAY_MS: Millis = 1000;
const ANSWER_TIMEOUT_MS: Millis = 2000;

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #workers = new Set<ChildProcess>();
  readonly #waiting = new Map<number, (message: Extract<WorkerMessage, { type: 'state' }>) => void>();
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

  async samples(): Promise<Sample[]> {
    return sum((await this.#ask()).flatMap(({ samples }) => samples));
  }

  async storeAvailable(): Promise<boolean> {
    return (await this.#ask()).every(({ storeAvailable }) => storeAvailable);
  }

  reload(): void {
    for (const worker of this.#workers) worker.kill('SIGHUP');
  }

  async close(): Promise<void> {
    this.#stopping = true;
    await Promise.all(
      [...this.#workers].map(async (worker) => {
        const gone = once(worker, 'exit');
        worker.kill('SIGTERM');
        await gone;
      }),
    );
  }

  async #startWorker(): Promise<void> {
    const { main, execArgv, env, log } = this.#options;
    const worker = fork(main, ['--worker'], {
      execArgv: [...execArgv],
      env: { ...env, GATEWAY_PORT: String(this.#port) },
      // A Ctrl-C reaches the whole process group; only the supervisor shall act on it.
      detached: true,
    });
    await new Promise<void>((resolve, reject) => {
      worker.once('exit', () => reject(new WorkerStartError('a worker could not start')));
      worker.on('message', (message: WorkerMessage) => {
        if (message.type === 'state') {
          this.#waiting.get(message.id)?.(message);
          return;
        }
        this.#port = message.port;
        this.policies = message.policies;
        resolve();
      });
    });
    this.#workers.add(worker);
    worker.removeAllListeners('exit');
    worker.once('exit', (code, signal) => {
      this.#workers.delete(worker);
      if (this.#stopping) return;
      log.error({ code, signal }, 'a worker ended; another one takes its place');
      setTimeout(() => {
        if (!this.#stopping)
          this.#startWorker().catch((error: Error) => log.error({ reason: error.message }, 'no new worker'));
      }, RESTART_DELAY_MS);
    });
  }

  /** What the workers say of themselves; one that does not answer in time is left out. */
  async #ask(): Promise<Extract<WorkerMessage, { type: 'state' }>[]> {
    const answers = [...this.#workers].map(async (worker) => {
      const id = ++this.#question;
      const answer = new Promise<Extract<WorkerMessage, { type: 'state' }> | null>((resolve) => {
        this.#waiting.set(id, resolve);
        setTimeout(resolve, ANSWER_TIMEOUT_MS, null).unref();
      });
      worker.send({ type: 'state', id } satisfies WorkerQuestion);
      return answer.finally(() => this.#waiting.delete(id));
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
