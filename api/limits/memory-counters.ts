/**
 * Counters in the memory of a process, for a start without REDIS_URL. The in-memory limiter of the library reads the
 * wall clock, so tests could not move the time.
 */
import type { Clock, Millis } from '#shared/clock.ts';
import type { Counters } from './counters.ts';

/**
 * Maximum number of windows, which take about 20 MB. Beyond it the oldest window is dropped, and its caller gets a new
 * one.
 */
const WINDOWS_MAX = 100_000;

interface Window {
  used: number;
  readonly endsAt: Millis;
}

export function createMemoryCounters(clock: Clock, size = WINDOWS_MAX): Counters {
  const windows = new Map<string, Window>();
  return {
    async use(name, key, windowSeconds) {
      const now = clock();
      const windowKey = `${name}:${key}`;
      let window = windows.get(windowKey);
      const left = (window?.endsAt ?? now) - now;
      // If more than a window is left, the clock was set back.
      if (window === undefined || left <= 0 || left > windowSeconds * 1000) {
        // Reinserted at the end, so that the map is in the order in which windows began.
        windows.delete(windowKey);
        const oldest = windows.size >= size ? windows.keys().next().value : undefined;
        if (oldest !== undefined) windows.delete(oldest);
        window = { used: 0, endsAt: now + windowSeconds * 1000 };
        windows.set(windowKey, window);
      }
      window.used += 1;
      return { used: window.used, resetMs: window.endsAt - now };
    },
    async giveBack(name, key) {
      const windowKey = `${name}:${key}`;
      const window = windows.get(windowKey);
      if (window === undefined || window.endsAt <= clock()) return;
      window.used -= 1;
      if (window.used <= 0) windows.delete(windowKey);
    },
    isUp: async () => true,
    close: async () => windows.clear(),
  };
}
