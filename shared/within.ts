import type { Millis } from './clock.ts';

/**
 * Waits for `work`, but at most `ms`. A later result is ignored.
 *
 * @throws the error of `work`, or an Error with the time limit
 */
export function within<T>(ms: Millis, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      // After a stall of this event loop the answer may already be in the socket, so let it be read first.
      setImmediate(() => reject(new Error(`no answer within ${ms} ms`)));
    }, ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
