/**
 * The interface of the counters behind the limits. There are two implementations: in Redis, shared by all processes,
 * and in the memory of the process.
 */
import type { Millis, Seconds } from '#shared/clock.ts';

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
