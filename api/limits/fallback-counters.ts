/**
 * Counters for limits that must also hold during an outage of the store. Each process then counts separately. Limits
 * that allow every request meanwhile do not need this.
 */
import type { Clock } from '#shared/clock.ts';
import { type Counters, CountersUnavailable } from './counters.ts';
import { createMemoryCounters } from './memory-counters.ts';

/** Maximum number of windows. Beyond it, the oldest one is dropped. */
const WINDOWS_MAX = 10_000;

export function withFallback(counters: Counters, clock: Clock): Pick<Counters, 'use' | 'giveBack'> {
  const own = createMemoryCounters(clock, WINDOWS_MAX);
  const unlessAway = async <T>(ask: () => Promise<T>, askOwn: () => Promise<T>): Promise<T> => {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof CountersUnavailable)) throw error;
      return askOwn();
    }
  };
  return {
    use: (name, key, windowSeconds) =>
      unlessAway(
        () => counters.use(name, key, windowSeconds),
        () => own.use(name, key, windowSeconds),
      ),
    giveBack: (name, key) =>
      unlessAway(
        () => counters.giveBack(name, key),
        () => own.giveBack(name, key),
      ),
  };
}
