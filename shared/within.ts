import type { Millis } from './clock.ts';

/**
 * The outcome of `work`, if it comes in time. What comes later is ignored.
 *
 * @throws what `work` fails with, or an Error that names the budget
 */
export function within<T>(ms: Millis, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      // After a stall of our own event loop the answer may already be in the socket: look there before giving up.
      setImmediate(() => reject(new Error(`no answer within ${ms} ms`)));
    }, ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
