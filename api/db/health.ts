/** Checks whether the database works. Each check runs at most once a second. */
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { DatabaseBusy, DatabaseFault, type DatabaseProblem, type OnTrouble } from './faults.ts';
import type { Database } from './schema.ts';

export interface DatabaseHealth {
  /** Logs the trouble of a statement, and remembers it. */
  readonly note: OnTrouble;
  /** Tries a write. @returns the problem, or null */
  check(db: Database): Promise<DatabaseProblem | 'database_busy' | null>;
  /** Tries a read. Never rejects, and answers within a bound. */
  isReached(db: Database): Promise<boolean>;
}

interface HealthLog {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const TRIED_EVERY: Millis = 1_000;
const REACHED_WITHIN: Millis = 2_000;
/** A lasting problem is logged again after this time. */
const SAID_EVERY: Millis = 60_000;
/** A small write may find room where larger ones find none, so what a statement found counts for this long. */
const REMEMBERED_FOR: Millis = 10_000;

export function createDatabaseHealth(clock: Clock, log: HealthLog): DatabaseHealth {
  /** The trouble that was logged, until a write succeeds. */
  let last: { readonly problem: DatabaseProblem | 'database_busy'; saidAt: Millis; at: Millis } | null = null;

  const tryIt: DatabaseHealth['check'] = async (db) => {
    // Damage is permanent.
    if (last?.problem === 'database_damaged') return last.problem;
    if (last?.problem === 'database_full' && clock() - last.at < REMEMBERED_FOR) return last.problem;
    const at = toTimestamp(clock());
    const row = { name: 'database', at };
    try {
      await db
        .insertInto('probes')
        .values(row)
        .onConflict((conflict) => conflict.column('name').doUpdateSet({ at }))
        .execute();
    } catch (error) {
      if (error instanceof DatabaseBusy) return 'database_busy';
      return error instanceof DatabaseFault ? error.problem : 'database_unusable';
    }
    if (last !== null) log.info({ problem: last.problem }, 'the database works again');
    last = null;
    return null;
  };

  return {
    note(trouble) {
      const at = clock();
      const problem = trouble instanceof DatabaseFault ? trouble.problem : 'database_busy';
      const isSaid = last?.problem === problem && at - last.saidAt < SAID_EVERY;
      if (!isSaid) log.error({ problem, err: trouble.cause }, trouble.message);
      last = { problem, at, saidAt: isSaid && last !== null ? last.saidAt : at };
    },
    check: onceASecond(clock, tryIt),
    isReached: onceASecond(clock, (db) =>
      within(REACHED_WITHIN, db.selectFrom('probes').select('name').limit(1).execute()).then(
        () => true,
        () => false,
      ),
    ),
  };
}

/** Calls within a second share one result, even one that is still pending. */
function onceASecond<T>(clock: Clock, ask: (db: Database) => Promise<T>): (db: Database) => Promise<T> {
  let last: { readonly at: Millis; readonly answer: Promise<T> } | null = null;
  return (db) => {
    const now = clock();
    if (last === null || now - last.at >= TRIED_EVERY || now < last.at) last = { at: now, answer: ask(db) };
    return last.answer;
  };
}
