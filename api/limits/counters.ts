/**
 * The interface of the counters behind the limits. There are two implementations: in Redis, shared by all processes,
 * and in the memory of the process.
 */
import type { Clock, Millis, Seconds } from '#shared/clock.ts';

export interface Count {
  /** Uses in the current window, including this one and refused ones. */
  readonly used: number;
  /** Time until the window ends and counting begins again; above 0. */
  readonly resetMs: Millis;
}

export interface Counters {
  /**
   * Counts one use, atomically. A window begins with its first use, and later uses do not prolong it.
   *
   * @param name the limit; each name has one length of window
   * @param key a digest, never an address or a credential
   * @throws CountersUnavailable at once or within a bounded time
   */
  use(name: string, key: string, windowSeconds: Seconds): Promise<Count>;
  /**
   * Removes one use from the current window, because it turned out not to count. Removing the last use ends the
   * window.
   *
   * @throws CountersUnavailable as `use` does
   */
  giveBack(name: string, key: string): Promise<void>;
  /** Whether the store answers. Never rejects, and takes no longer than a use. */
  isUp(): Promise<boolean>;
  close(): Promise<void>;
}

/** The store did not answer. Each caller decides what this means. */
export class CountersUnavailable extends Error {
  constructor(cause: unknown) {
    super('The store of the counters does not answer', { cause });
    this.name = 'CountersUnavailable';
  }
}

/**
 * Maximum number of windows, which take about 20 MB. Beyond it the oldest window is dropped, and its caller gets a new
 * one.
 */
const WINDOWS_MAX = 100_000;

interface Window {
  used: number;
  readonly endsAt: Millis;
}

/**
 * Counters in the memory of a process, for a start without REDIS_URL. The in-memory limiter of the library has no bound,
 * and reads the wall clock, so tests could not move the time.
 */
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
