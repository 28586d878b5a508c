/**
 * Time limits on answers from outside. Timers run before sockets are read, so after a stall of this event loop a limit
 * would end although the answer is already in the socket. These limits let it be read first.
 */
import type { Millis } from './clock.ts';

/**
 * Waits for `work`, but at most `ms`. A later result is ignored.
 *
 * @throws the error of `work`, or an Error with the time limit
 */
export function within<T>(ms: Millis, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      setImmediate(() => reject(new Error(`no answer within ${ms} ms`)));
    }, ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Returns a signal that aborts work after `ms` with a TimeoutError, as that of `AbortSignal.timeout` does. */
export function timeLimit(ms: Millis): AbortSignal {
  const controller = new AbortController();
  const error = new DOMException(`no answer within ${ms} ms`, 'TimeoutError');
  setTimeout(() => setImmediate(() => controller.abort(error)), ms).unref();
  return controller.signal;
}
