/**
 * Where uses are counted. Three stores do so: Redis, shared by all processes; the memory of the process; and that of its
 * parent, shared by the workers of one API.
 */
import type { Millis, Seconds } from '#shared/clock.ts';

export interface Count {
  /** Uses in the current window, this one included, refused ones too. */
  readonly used: number;
  /** Until the window ends and counting begins anew; above 0. */
  readonly resetMs: Millis;
}

export interface Counters {
  /**
   * Counts one use, atomically. A window begins with the first use in it and is not prolonged by later ones.
   *
   * @param name what is counted, one window length per name
   * @param key a digest, never an address or a credential
   * @throws CountersUnavailable, at once or within a bound
   */
  use(name: string, key: string, windowSeconds: Seconds): Promise<Count>;
  /**
   * Takes one use of the current window back: it turned out not to count. With the last one the window ends.
   *
   * @throws CountersUnavailable likewise
   */
  giveBack(name: string, key: string): Promise<void>;
  /** Does the store answer? Never rejects, and says so within the bound of a use. */
  isUp(): Promise<boolean>;
  close(): Promise<void>;
}

/** The store did not answer. Each caller has a rule of its own for this. */
export class CountersUnavailable extends Error {
  constructor(cause: unknown) {
    super('The store of the counters does not answer', { cause });
    this.name = 'CountersUnavailable';
  }
}
