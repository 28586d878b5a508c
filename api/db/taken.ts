/**
 * A unique index decides between two who write the same at once. The one that is refused begins again, and its own check
 * then finds what the other one wrote.
 */
import { isUniqueViolation } from './database.ts';

/** Each attempt but the last meets another writer; more than a few in a row are no coincidence. */
const ATTEMPTS_MAX = 10;

/**
 * @param constraint the columns of the index, `table.column` and in its order
 * @param work a whole transaction
 * @throws the violation when it comes again and again
 */
export async function againWhenTaken<T>(constraint: readonly string[], work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !isUniqueViolation(error, ...constraint)) throw error;
    }
  }
}
