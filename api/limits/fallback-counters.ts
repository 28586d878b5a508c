/**
 * For limits that must hold when the store is away: then each process counts for itself. Limits that allow every request
 * meanwhile have no need of it.
 */
import type { Clock } from '#shared/clock.ts';
import { type Counters, CountersUnavailable } from './counters.ts';
import { createMemoryCounters } from './memory-counters.ts';

/** Beyond it the window that began first is forgotten. */
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
