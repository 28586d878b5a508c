/** Limits log messages that clients can trigger. */
import type { Clock, Millis } from './clock.ts';

const INTERVAL_MS: Millis = 60_000;

/** @returns a function that does nothing if it was called within the last minute */
export function onceAMinute<Args extends readonly unknown[]>(
  clock: Clock,
  tell: (...args: Args) => void,
): (...args: Args) => void {
  let toldAt = Number.NEGATIVE_INFINITY;
  return (...args) => {
    const now = clock();
    if (now - toldAt < INTERVAL_MS) return;
    toldAt = now;
    tell(...args);
  };
}
