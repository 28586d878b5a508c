/**
 * Runs several workers that serve the API on one port and one database. It starts, replaces and stops them, and counts
 * for the application's limits if there is no Redis.
 */
import type { ChildProcess } from 'node:child_process';
import { createMemoryCounters } from '#api/limits/memory-counters.ts';
import { countFor, type UseMessage } from '#api/limits/parent-counters.ts';
import type { Millis } from '#shared/clock.ts';
import { WorkerPool, type WorkerProgram } from '#shared/worker-pool.ts';

/** The port is open, and the credentials of a first start exist. */
export interface ReadyMessage {
  readonly kind: 'ready';
  /** Address of the API, such as `http://127.0.0.1:3000`. */
  readonly address: string;
  /** Text that the operator sees once, at the first start. */
  readonly notice: string | null;
}

/** A sign of life. */
export interface AliveMessage {
  readonly kind: 'alive';
}

interface SupervisorOptions extends WorkerProgram {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** How long a worker has to end after it was told to. Then it is killed. */
  readonly endTimeoutMs: Millis;
}

export interface Supervisor {
  /** Resolves when all workers serve. @throws if the port is taken, or WorkerStartError */
  start(): Promise<Omit<ReadyMessage, 'kind'>>;
  /** The notice of the first start. It is returned even if other workers failed to start, because it is not repeated. */
  notice(): string | null;
  /** Resolves when all workers have ended. Each finishes its requests first. */
  close(): Promise<void>;
}

export function createSupervisor({ env, ...options }: SupervisorOptions): Supervisor {
  const { clock, log } = options;
  const counters = createMemoryCounters(clock);
  let address = '';
  let notice: string | null = null;

  const answer = async (worker: ChildProcess, message: UseMessage): Promise<void> => {
    const reply = await countFor(counters, message);
    // A worker that has ended meanwhile does not wait for an answer.
    if (worker.connected) worker.send(reply, () => undefined);
  };
  const pool = new WorkerPool<ReadyMessage | UseMessage | AliveMessage>({
    ...options,
    env: (port) => ({ ...env, API_WORKERS: '1', API_PORT: String(port) }),
    // There is no time limit for a start, because migrating a large database, or waiting for one, may take any time.
    startTimeoutMs: null,
    onMessage(worker, message) {
      if (message.kind === 'alive') return null;
      if (message.kind === 'use') {
        answer(worker, message).catch((error: unknown) =>
          log.error({ err: error }, 'uses of a worker could not be counted'),
        );
        return null;
      }
      address = message.address;
      notice ??= message.notice;
      return Number(new URL(message.address).port);
    },
    onEnded: () => undefined,
  });

  return {
    async start() {
      await pool.start();
      return { address, notice };
    },
    notice: () => notice,
    close: () => pool.close(),
  };
}
