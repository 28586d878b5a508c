/**
 * Limits how many expensive tasks run at once. A bounded number waits, and more are refused at once.
 *
 * Node runs hashing, file access and DNS lookups in the same four threads. Without this limit, 600 concurrent logins
 * delayed a file by 28 s (2 cores).
 */
import { tooManyRequests } from '#api/errors.ts';

export interface ConcurrencyLimit {
  readonly runningMax: number;
  readonly waitingMax: number;
  readonly retryAfterSeconds: number;
}

/**
 * @returns the same function, which runs in the order of its calls
 * @throws ApiError too_many_requests if too many calls wait; the same for every caller, so it reveals nothing
 */
export function limitConcurrency<A extends readonly unknown[], R>(
  work: (...args: A) => Promise<R>,
  { runningMax, waitingMax, retryAfterSeconds }: ConcurrencyLimit,
): (...args: A) => Promise<R> {
  let busy = 0;
  const waiting: (() => void)[] = [];
  return async (...args) => {
    const mustWait = busy >= runningMax;
    if (mustWait && waiting.length >= waitingMax) throw tooManyRequests(retryAfterSeconds);
    // A call that ends starts the next waiting one, so `busy` stays unchanged.
    if (mustWait) await new Promise<void>((resolve) => waiting.push(resolve));
    else busy += 1;
    try {
      return await work(...args);
    } finally {
      const next = waiting.shift();
      if (next === undefined) busy -= 1;
      else next();
    }
  };
}
