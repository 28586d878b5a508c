/**
 * Work that goes on behind an answer, so that its time tells the caller nothing. One piece runs at a time and a bounded
 * number waits. The work is not durable: a process that is killed loses it, so it must be something to ask for again.
 */
import { limitConcurrency } from './concurrency.ts';
import { tooManyRequests } from './errors.ts';

const PENDING_MAX = 500;
const RETRY_AFTER_SECONDS = 5;

export interface Background {
  /**
   * Takes a piece of work on; what it throws goes to the log.
   *
   * @param sent the work begins after it, such as when the reply is sent; a rejection counts as well
   * @throws ApiError too_many_requests when too much waits already; the same for every caller
   */
  add(work: () => Promise<void>, sent?: Promise<unknown>): void;
  /** Resolves when everything that was added has ended. */
  idle(): Promise<void>;
}

export function createBackground(log: { error(fields: object, message: string): void }): Background {
  const pending = new Set<Promise<void>>();
  const run = limitConcurrency((work: () => Promise<void>) => work(), {
    runningMax: 1,
    waitingMax: PENDING_MAX,
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
  const runLogged = async (work: () => Promise<void>, sent: Promise<unknown>): Promise<void> => {
    await sent.catch(() => undefined);
    try {
      await run(work);
    } catch (error) {
      log.error({ err: error }, 'work behind an answer failed');
    }
  };
  return {
    add(work, sent = Promise.resolve()) {
      if (pending.size >= PENDING_MAX) throw tooManyRequests(RETRY_AFTER_SECONDS);
      const done = runLogged(work, sent).finally(() => pending.delete(done));
      pending.add(done);
    },
    async idle() {
      while (pending.size > 0) await Promise.all(pending);
    },
  };
}
