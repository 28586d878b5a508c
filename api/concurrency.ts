/**
 * Limits how much costly work runs at once: a few pieces, a bounded number waiting, the rest refused at once.
 *
 * Node does hashing, files and name look-ups in the same four threads. Without this, six hundred logins at once kept a
 * file waiting for 28 s (2 cores), and whoever came after them for as long.
 */
import { tooManyRequests } from './errors.ts';

export interface ConcurrencyLimit {
  /** How many pieces of work are done at once. */
  readonly runningMax: number;
  /** How many more may wait. */
  readonly waitingMax: number;
  /** What a refused caller is told to wait. */
  readonly retryAfterSeconds: number;
}

/**
 * @returns the same work, in the order in which it was asked for
 * @throws ApiError too_many_requests when too many wait already; the same for every caller, so it tells nothing
 */
export function limitConcurrency<A extends readonly unknown[], R>(
  work: (...args: A) => Promise<R>,
  { runningMax, waitingMax, retryAfterSeconds }: ConcurrencyLimit,
): (...args: A) => Promise<R> {
  let busy = 0;
  const waiting: (() => void)[] = [];
  return async (...args) => {
    if (busy < runningMax) busy += 1;
    else if (waiting.length >= waitingMax) throw tooManyRequests(retryAfterSeconds);
    // Whoever ends hands over to the next in line, so `busy` stays as it is.
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work(...args);
    } finally {
      const next = waiting.shift();
      if (next === undefined) busy -= 1;
      else next();
    }
  };
}
