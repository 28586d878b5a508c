/**
 * Runs work after the reply, so that its duration reveals nothing to the caller. One task runs at a time, and a bounded
 * number waits. Tasks are not durable: a killed process loses them. So use this only for work that people can request
 * again.
 */

import { tooManyRequests } from '#api/errors.ts';
import { limitConcurrency } from './concurrency.ts';

const PENDING_MAX = 500;
const RETRY_AFTER_SECONDS = 5;

export interface Background {
  /**
   * Accepts a task. Errors that it throws are logged.
   *
   * @param sent the task begins when this settles, such as when the reply is sent
   * @throws ApiError too_many_requests if too many tasks wait; the same for every caller
   */
  add(work: () => Promise<void>, sent?: Promise<unknown>): void;
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
      log.error({ err: error }, 'a task after a reply failed, and is not repeated');
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
