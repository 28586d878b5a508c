/** A unique index refuses one of two transactions that write the same value. These functions handle the refusal. */
import { codeOf, reasonOf } from './faults.ts';
import { uniqueName } from './migrations/schema-writer.ts';

/** Maximum number of attempts. Each failed one has met another writer, and more in a row are not a coincidence. */
const ATTEMPTS_MAX = 10;

/**
 * Whether a unique index has refused a write.
 *
 * @param constraint the columns of the index in order, each `table.column`
 */
export function isUniqueViolation(error: unknown, ...constraint: readonly string[]): boolean {
  const code = codeOf(error);
  if (code.startsWith('SQLITE_CONSTRAINT_')) return reasonOf(error).endsWith(`: ${constraint.join(', ')}`);
  const [table = ''] = constraint[0]?.split('.') ?? [];
  const columns = constraint.map((column) => column.slice(table.length + 1));
  return (
    code === '23505' &&
    error instanceof Error &&
    Reflect.get(error, 'constraint') === uniqueName(table, columns)
  );
}

/**
 * Repeats the work, so that its own check finds the value of the other transaction.
 *
 * @param constraint as for `isUniqueViolation`
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

/** Refuses the write. @throws `taken` instead of the violation */
export async function unlessTaken<T>(
  constraint: readonly string[],
  taken: Error,
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write();
  } catch (error) {
    throw isUniqueViolation(error, ...constraint) ? taken : error;
  }
}
