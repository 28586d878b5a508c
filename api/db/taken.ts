/**
 * If two transactions write the same unique value, the index refuses one. That one is repeated, and its own check then
 * finds the value.
 */
import { isUniqueViolation } from './database.ts';

/** Each failed attempt has met another writer. More than a few in a row are not a coincidence. */
const ATTEMPTS_MAX = 10;

/**
 * @param constraint the columns of the index in order, each `table.column`
 * @param work a whole transaction
 * @throws the violation of the last attempt
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
