/**
 * Several processes that serve the API on one port and one database. This one serves nothing: it has them started and
 * replaced, counts their uses of the application's limits where no Redis does, and ends them.
 */
import type { ChildProcess } from 'node:child_process';
import { createMemoryCounters } from '#api/limits/memory-counters.ts';
import { countFor, type UsesMessage } from '#api/limits/parent-counters.ts';
import { assertFree } from '#shared/assert-free.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { type PoolLog, WorkerPool } from '#shared/worker-pool.ts';
import type { ReadyMessage } from './workers.ts';

interface SupervisorOptions {
  readonly main: string;
  readonly execArgv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly workers: number;
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  /** For a worker to end after it was told to; then it is killed. */
  readonly endTimeoutMs: Millis;
  readonly log: PoolLog;
}

export interface Supervisor {
  /** Resolves when all workers serve. @throws when the port is taken, or WorkerStartError */
  start(): Promise<Omit<ReadyMessage, 'kind'>>;
  /** What the first start told, also when the others then could not start: nobody else knows it. */
  notice(): string | null;
  /** Resolves when all workers have ended; each finishes its requests first. */
  close(): Promise<void>;
}

export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { main, execArgv, env, workers, host, clock, endTimeoutMs, log } = options;
  const counters = createMemoryCounters(clock);
  let { port } = options;
  let address = '';
  let notice: string | null = null;

  const answer = async (worker: ChildProcess, message: UsesMessage): Promise<void> => {
    const reply = await countFor(counters, message);
    // One that has ended meanwhile waits for nothing.
    if (worker.connected) worker.send(reply, () => undefined);
  };
  const pool = new WorkerPool<ReadyMessage | UsesMessage>({
    main,
    args: ['--worker'],
    execArgv,
    // The first one finds the port.
    env: () => ({ ...env, API_WORKERS: '1', API_PORT: String(port) }),
    workers,
    clock,
    // Migrating a large database, or waiting for one, takes as long as it takes.
    startTimeoutMs: null,
    endTimeoutMs,
    log,
    onMessage(worker, message) {
      if (message.kind === 'uses') {
        answer(worker, message).catch((error: unknown) =>
          log.error({ err: error }, 'uses of a worker could not be counted'),
        );
        return false;
      }
      address = message.address;
      port = Number(new URL(message.address).port);
      notice ??= message.notice;
      return true;
    },
    onEnded: () => undefined,
  });

  return {
    async start() {
      // Workers share the port, so the kernel would also let a stranger's workers share it: ask for it alone once.
      if (port !== 0) await assertFree(host, port);
      await pool.start();
      return { address, notice };
    },
    notice: () => notice,
    close: () => pool.close(),
  };
}
