import type { Clock, Millis } from './clock.ts';

const INTERVAL_MS: Millis = 60_000;

/** @returns a function that does nothing if it was called within the last minute */
export function onceAMinute<Args extends readonly unknown[]>(
  clock: Clock,
  log: (...args: Args) => void,
): (...args: Args) => void {
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (...args) => {
    const now = clock();
    if (Math.abs(now - loggedAt) < INTERVAL_MS) return;
    loggedAt = now;
    log(...args);
  };
}
