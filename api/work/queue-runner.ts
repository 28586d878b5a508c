/**
 * Runs a durable queue. The work is in a table, which all processes share and which outlives them.
 *
 * A pass does the work that is due. It runs when the queue is notified, and otherwise once per poll interval: for
 * work that becomes due later, for work of other processes, and for work that a dead process left behind. Passes
 * never overlap.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis } from '#shared/clock.ts';

/** Pause between passes. Under load a pass then finds several pieces of work at once. */
const GATHER_MS: Millis = 10;

export interface QueueRunner {
  /** Called when there is work. If a call is lost, the next poll finds the work. */
  wake(): void;
  /** Resolves when nothing is due and nothing is in progress. */
  idle(): Promise<void>;
  /** Begins no new work, and waits a bounded time for work in progress. The rest is due again when its lease ends. */
  stop(): Promise<void>;
}

export interface Pass {
  isStopping(): boolean;
  /** Work that the pass starts without waiting for it. The queue is notified when it ends. */
  track(work: Promise<void>): void;
}

interface QueueOptions {
  /** @returns true if there is more to do at once */
  readonly pass: (pass: Pass) => Promise<boolean>;
  readonly pollMs: Millis;
  readonly stopTimeoutMs: Millis;
  /** Called when a pass failed. The next one runs at the next poll. */
  readonly onError: (error: unknown) => void;
}

export function startQueueRunner({ pass, pollMs, stopTimeoutMs, onError }: QueueOptions): QueueRunner {
  const running = new Set<Promise<void>>();
  const idlers = new Set<() => void>();
  let isStopping = false;
  let isDue = true;
  let endPause = (): void => {};

  const wake = (): void => {
    isDue = true;
    endPause();
  };
  const track = (work: Promise<void>): void => {
    const tracked = work.finally(() => {
      running.delete(tracked);
      wake();
    });
    running.add(tracked);
  };
  const runPass = async (): Promise<void> => {
    isDue = false;
    try {
      if (await pass({ isStopping: () => isStopping, track })) isDue = true;
    } catch (error) {
      onError(error);
      isDue = false;
    }
  };
  const releaseIdlers = (): void => {
    for (const resolve of idlers) resolve();
    idlers.clear();
  };

  const loop = async (): Promise<void> => {
    while (!isStopping) {
      if (isDue) {
        await runPass();
        if (isDue && !isStopping) await sleep(GATHER_MS);
        continue;
      }
      if (running.size === 0) releaseIdlers();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pollMs);
        endPause = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      endPause = () => {};
      isDue = true;
    }
    releaseIdlers();
  };
  const ended = loop();

  return {
    wake,
    async idle() {
      if (isStopping) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      idlers.add(resolve);
      wake();
      await promise;
    },
    async stop() {
      isStopping = true;
      wake();
      const timeout = new AbortController();
      const underWay = ended.then(() => Promise.all(running));
      await Promise.race([underWay, sleep(stopTimeoutMs, undefined, { signal: timeout.signal })]);
      timeout.abort();
    },
  };
}
