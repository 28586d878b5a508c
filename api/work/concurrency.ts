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

/** Returns the owner of a call, who gets at most half of all places. */
type OwnerOf<A extends readonly unknown[]> = (...args: A) => string;

/**
 * @returns the same function, which runs in the order of its calls
 * @throws ApiError too_many_requests if too many calls wait; the same for every caller, so it reveals nothing
 */
export function limitConcurrency<A extends readonly unknown[], R>(
  work: (...args: A) => Promise<R>,
  { runningMax, waitingMax, retryAfterSeconds }: ConcurrencyLimit,
  ownerOf?: OwnerOf<A>,
): (...args: A) => Promise<R> {
  let busy = 0;
  const waiting: (() => void)[] = [];
  const shareMax = Math.ceil((runningMax + waitingMax) / 2);
  /** Number of calls that run or wait, by owner. */
  const shares = new Map<string, number>();
  return async (...args) => {
    const owner = ownerOf?.(...args) ?? null;
    const share = owner === null ? 0 : (shares.get(owner) ?? 0);
    if (share >= shareMax) throw tooManyRequests(retryAfterSeconds);
    const mustWait = busy >= runningMax;
    if (mustWait && waiting.length >= waitingMax) throw tooManyRequests(retryAfterSeconds);
    if (owner !== null) shares.set(owner, share + 1);
    // A call that ends starts the next waiting one, so `busy` stays unchanged.
    if (mustWait) await new Promise<void>((resolve) => waiting.push(resolve));
    else busy += 1;
    try {
      return await work(...args);
    } finally {
      if (owner !== null) {
        const left = (shares.get(owner) ?? 0) - 1;
        if (left > 0) shares.set(owner, left);
        else shares.delete(owner);
      }
      const next = waiting.shift();
      if (next === undefined) busy -= 1;
      else next();
    }
  };
}
