/**
 * Counts wrong guesses of a secret that is short enough to try: after ten wrong ones, the guesser waits. The store of
 * the counters may be away, and each process then counts by itself.
 *
 * A guess is counted before it is checked, and given back if it was right. So parallel guesses are not more than ten.
 */
import type { Clock, Seconds } from '#shared/clock.ts';
import { type Counters, CountersUnavailable, createMemoryCounters } from './counters.ts';

const WRONG_MAX = 10;
const WINDOW: Seconds = 10 * 60;
/** Maximum number of guessers that are counted in this process. Beyond it, the oldest one is dropped. */
const GUESSERS_MAX = 10_000;

interface Guesses {
  /** @returns the seconds that this guesser must wait; null if the guess can be checked */
  begin(guesser: string): Promise<number | null>;
  giveBack(guesser: string): Promise<void>;
}

/** @param name of the secret, such as `surveys.pin` */
export function createGuesses(
  name: string,
  { counters, clock }: { readonly counters: Counters; readonly clock: Clock },
): Guesses {
  const own = createMemoryCounters(clock, GUESSERS_MAX);
  const counted = async <T>(count: (by: Counters) => Promise<T>): Promise<T> => {
    try {
      return await count(counters);
    } catch (error) {
      if (!(error instanceof CountersUnavailable)) throw error;
      return count(own);
    }
  };
  return {
    async begin(guesser) {
      const { used, resetMs } = await counted((by) => by.use(name, guesser, WINDOW));
      return used > WRONG_MAX ? Math.ceil(resetMs / 1000) : null;
    },
    giveBack: (guesser) => counted((by) => by.giveBack(name, guesser, WINDOW)),
  };
}
