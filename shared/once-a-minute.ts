/** For the log: what strangers can cause as often as they like is told once a minute. */
import type { Clock, Millis } from './clock.ts';

const INTERVAL_MS: Millis = 60_000;

/** @returns what does nothing when it is called again within a minute */
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
