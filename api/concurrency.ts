/**
 * Limits how much costly work runs at once. A bounded number waits, and everything beyond is refused at once.
 *
 * Node does hashing, file access and DNS look-ups in the same four threads. Without this limit, 600 logins at once
 * delayed a file by 28 s (2 cores).
 */
import { tooManyRequests } from './errors.ts';

export interface ConcurrencyLimit {
  readonly runningMax: number;
  readonly waitingMax: number;
  readonly retryAfterSeconds: number;
}

/**
 * @returns the same function, which runs in the order of its calls
 * @throws ApiError too_many_requests when too many calls wait; the same for every caller, so it reveals nothing
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
    // A call that ends lets the next one in line begin, so `busy` stays as it is.
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
