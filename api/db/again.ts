/**
 * Does work again that the server undid because another transaction was in its way: a deadlock, or two that cannot be put
 * in an order. The only place that knows how often, and how long to wait.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis } from '#shared/clock.ts';
import { DatabaseBusy } from './faults.ts';

const ATTEMPTS_MAX = 6;
const PAUSE_MS_FIRST: Millis = 5;

/**
 * @param work has no effect but that on the database, or one that may happen twice
 * @throws DatabaseBusy when every attempt was in conflict
 */
export async function againAfterConflict<T>(
  work: () => Promise<T>,
  isConflict: (error: unknown) => boolean,
): Promise<T> {
  for (let attempt = 1, pause = PAUSE_MS_FIRST; ; attempt += 1, pause *= 2) {
    try {
      return await work();
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (attempt === ATTEMPTS_MAX) throw new DatabaseBusy(error, 'Others keep changing the same rows');
    }
    await sleep(pause);
  }
}
