/**
 * The counters behind the limits. There are two implementations: in Redis, shared by all processes, and in the memory of
 * the process.
 */
import type { Clock, Millis, Seconds } from '#shared/clock.ts';

interface Count {
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
   * @param identity who is counted, such as an address or the id of a key
   * @throws CountersUnavailable at once or within a bounded time
   */
  use(name: string, identity: string, windowSeconds: Seconds): Promise<Count>;
  /** Removes a use, because it turned out not to count. @throws CountersUnavailable as `use` does */
  giveBack(name: string, identity: string, windowSeconds: Seconds): Promise<void>;
  /** Whether the store answers. */
  isUp(): boolean;
  close(): Promise<void>;
}

/** The store did not answer. Each caller decides what this means. */
export class CountersUnavailable extends Error {
  constructor(cause: unknown) {
    super('The store of the counters does not answer', { cause });
    this.name = 'CountersUnavailable';
  }
}

/** Maximum number of windows, which take about 20 MB. Beyond it, the oldest window is dropped. */
const WINDOWS_MAX = 100_000;

/**
 * Counters in the memory of a process. The in-memory limiter of the library has no bound, and reads the wall clock, so
 * tests could not move the time.
 */
export function createMemoryCounters(clock: Clock, size = WINDOWS_MAX): Counters {
  /** In the order in which windows began. */
  const windows = new Map<string, { used: number; readonly endsAt: Millis }>();
  return {
    async use(name, identity, windowSeconds) {
      const now = clock();
      const key = `${name}:${identity}`;
      let window = windows.get(key);
      const left = (window?.endsAt ?? now) - now;
      // If more than a window is left, the clock was set back.
      if (window === undefined || left <= 0 || left > windowSeconds * 1000) {
        windows.delete(key);
        const oldest = windows.size >= size ? windows.keys().next().value : undefined;
        if (oldest !== undefined) windows.delete(oldest);
        window = { used: 0, endsAt: now + windowSeconds * 1000 };
        windows.set(key, window);
      }
      window.used += 1;
      return { used: window.used, resetMs: window.endsAt - now };
    },
    async giveBack(name, identity) {
      const window = windows.get(`${name}:${identity}`);
      if (window !== undefined) window.used -= 1;
    },
    isUp: () => true,
    close: async () => windows.clear(),
  };
}
