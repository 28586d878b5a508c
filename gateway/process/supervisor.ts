/**
 * Runs several gateway processes on one public port. The kernel distributes connections, and the shared store keeps
 * limits exact. The supervisor handles no traffic: it starts and replaces workers, sums their metrics, and forwards
 * signals.
 */
import type { ChildProcess } from 'node:child_process';
import type { RefusedAddress, RefusedAddresses } from '#gateway/addresses/addresses.ts';
import type { Row } from '#gateway/bans/rows.ts';
import { type Family, families, sum } from '#gateway/observe/metrics/exposition.ts';
import type { Ranked } from '#gateway/observe/metrics/ranking.ts';
import type { MatchReport } from '#gateway/observe/traffic.ts';
import { counter, gauge } from '#gateway/part/sample.ts';
import type { UpstreamOutageReport } from '#gateway/proxy/upstream-outage.ts';
import type { Outage } from '#gateway/store/circuit.ts';
import type { Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { WorkerPool, type WorkerProgram } from './worker-pool.ts';

export interface ProcessReport {
  readonly storeAvailable: boolean;
  /** The last time in which this process decided without the store; null if there was none. */
  readonly storeOutage: Outage | null;
  /** The same for requests that the application did not answer. */
  readonly upstreamOutage: UpstreamOutageReport | null;
  readonly replicas: number;
  /** Clients denied most, see Metrics. */
  readonly limited: readonly Ranked[];
  readonly matches: MatchReport;
}

export type WorkerMessage =
  | { readonly type: 'ready'; readonly port: number }
  | ({
      readonly type: 'state';
      /** Id of the WorkerRequest that this answers; 0 for a regular report. */
      readonly id: number;
      readonly families: readonly Family[];
      /** Addresses of clients refused since the last message. */
      readonly addresses: readonly RefusedAddress[];
    } & ProcessReport)
  | { readonly type: 'applied'; readonly id: number };

type Answer = Extract<WorkerMessage, { id: number }>;
type State = Extract<WorkerMessage, { type: 'state' }>;

type WorkerCommand = { readonly type: 'state' } | { readonly type: 'change'; readonly row: Row };

export type WorkerRequest = WorkerCommand & { readonly id: number };

interface SupervisorOptions extends WorkerProgram {
  /** Collects the addresses of refused clients from the workers; null if nobody wants them. */
  readonly addresses: RefusedAddresses | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly drainTimeoutMs: Millis;
}

/** A worker that has not ended this long after its drain timeout is killed. */
const END_TIMEOUT_MS: Millis = 5000;
const ANSWER_TIMEOUT_MS: Millis = 2000;

export class Supervisor {
  readonly #pool: WorkerPool<WorkerMessage>;
  /** Latest metrics of each worker. */
  readonly #families = new Map<ChildProcess, readonly Family[]>();
  /** Sum of the counters of workers that have ended. Without it, totals would fall when a worker ends. */
  #endedCounters: Promise<readonly Family[]> = Promise.resolve([]);
  readonly #pending = new Map<number, (answer: Answer) => void>();
  #requestId = 0;
  readonly #addresses: RefusedAddresses | null;

  constructor(options: SupervisorOptions) {
    const { addresses, env, drainTimeoutMs, ...program } = options;
    this.#addresses = addresses;
    this.#pool = new WorkerPool({
      ...program,
      env: (port) => ({ ...env, GATEWAY_PORT: String(port), GATEWAY_REUSE_PORT: '1' }),
      endTimeoutMs: drainTimeoutMs + END_TIMEOUT_MS,
      onMessage: (worker, message) => this.#onMessage(worker, message),
      onEnded: (worker) => this.#onEnded(worker),
    });
  }

  get port(): number {
    return this.#pool.port;
  }

  /** @throws WorkerStartError, or an error of node:net if the port is taken */
  start(): Promise<void> {
    return this.#pool.start();
  }

  /** A worker that hangs keeps its share of the connections, so the gateway is not ready until it is replaced. */
  ready(): boolean {
    return !this.#pool.isStopping && this.#pool.ready.length > 0 && !this.#pool.hasSilent;
  }

  /**
   * Returns the metrics of each process. If a worker does not answer in time, its latest report is used, so that
   * counters never fall.
   */
  async families(): Promise<readonly (readonly Family[])[]> {
    await this.processes();
    const own = families([
      gauge('floodgate_workers', 'Processes that are ready.', this.#pool.ready.length),
      counter(
        'floodgate_worker_restarts_total',
        'Workers that ended and were replaced.',
        this.#pool.restarts,
      ),
    ]);
    // Taken at once: a worker that ends during the wait moves its counters from one to the other.
    const [ended, living] = [this.#endedCounters, [...this.#families.values()]];
    return [own, await ended, ...living];
  }

  /** Returns the reports of the workers that answer in time. */
  async processes(): Promise<State[]> {
    const answers = await this.#sendAll({ type: 'state' });
    return answers.filter((answer) => answer.type === 'state');
  }

  /** Resolves when all workers that answer have applied the change. */
  async applyChange(row: Row): Promise<void> {
    await this.#sendAll({ type: 'change', row });
  }

  reload(): void {
    for (const worker of this.#pool.ready) worker.kill('SIGHUP');
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  #onMessage(worker: ChildProcess, message: WorkerMessage): number | null {
    if (message.type === 'state') {
      this.#addresses?.take(message.addresses);
      // The counters of a worker that has ended are already in #endedCounters.
      if (this.#pool.ready.includes(worker)) this.#families.set(worker, message.families);
    }
    if (message.type === 'ready') return message.port;
    this.#pending.get(message.id)?.(message);
    return null;
  }

  #onEnded(worker: ChildProcess): void {
    const counted = (this.#families.get(worker) ?? []).filter(({ type }) => type !== 'gauge');
    this.#endedCounters = this.#endedCounters.then((ended) => sum([ended, counted]));
    this.#families.delete(worker);
  }

  /** Sends a message to all workers. @returns the answers; workers that do not answer in time are left out */
  async #sendAll(command: WorkerCommand): Promise<Answer[]> {
    const answers = this.#pool.ready.map(async (worker): Promise<Answer | null> => {
      const id = ++this.#requestId;
      const answer = new Promise<Answer | null>((resolve) => {
        this.#pending.set(id, resolve);
        // Fails if the worker is just ending; its 'exit' event follows.
        worker.send({ ...command, id } satisfies WorkerRequest, (error) => error && resolve(null));
      });
      return within(ANSWER_TIMEOUT_MS, answer)
        .catch(() => null)
        .finally(() => this.#pending.delete(id));
    });
    return (await Promise.all(answers)).filter((answer) => answer !== null);
  }
}
