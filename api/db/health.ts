/**
 * Checks whether the database works. Faults of statements are remembered. A check commits a small write, because a full
 * disk shows only then; reachability is checked with a read. Each check runs at most once a second.
 *
 * A small write may fit into pages that exist while larger ones find no room. So once a statement has found none, the
 * checks write as much as a large response, until there is room for it.
 */
import { createHash } from 'node:crypto';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { DatabaseBusy, type DatabaseFault, type DatabaseProblem } from './faults.ts';
import type { Database } from './schema.ts';

export interface DatabaseHealth {
  note(problem: DatabaseProblem, fault: DatabaseFault): void;
  /** Records that a statement could not reach the database; null if it is reachable again. */
  noteAway(away: DatabaseBusy | null): void;
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
const ROOM_BYTES = 262_144;

export function createDatabaseHealth(clock: Clock, log: HealthLog): DatabaseHealth {
  /** Damage is permanent, so it is remembered until the process ends. */
  let damage: DatabaseProblem | null = null;
  let problem: DatabaseProblem | null = null;
  let saidAt: Millis | null = null;
  let awaySaidAt: Millis | null = null;

  const tryIt = async (db: Database): ReturnType<DatabaseHealth['check']> => {
    const row = { name: 'database', at: toTimestamp(clock()) };
    try {
      if (problem === 'database_full') await tryRoom(db);
      await write(db, row);
    } catch (error) {
      if (error instanceof DatabaseBusy) return 'database_busy';
      return problem ?? 'database_unusable';
    }
    if (problem !== null && damage === null) {
      log.info({ problem }, 'the database can be written again');
      problem = null;
      saidAt = null;
    }
    return damage;
  };

  return {
    note(found, fault) {
      const now = clock();
      if (found === 'database_damaged') damage = found;
      if (found !== problem || saidAt === null || now - saidAt >= SAID_EVERY) {
        log.error({ problem: found, err: fault.cause }, fault.message);
        saidAt = now;
      }
      problem = found;
    },
    noteAway(away) {
      const now = clock();
      if (away === null) {
        if (awaySaidAt !== null) log.info({}, 'the database is back');
        awaySaidAt = null;
      } else if (awaySaidAt === null || now - awaySaidAt >= SAID_EVERY) {
        log.error({ err: away.cause }, `DATABASE_URL: ${away.message}; look at its server`);
        awaySaidAt = now;
      }
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

function write(db: Database, row: { readonly name: string; readonly at: string }): Promise<unknown> {
  return db
    .insertInto('probes')
    .values(row)
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ at: row.at }))
    .execute();
}

/** Takes room and gives it back, in two transactions, because only a commit needs the room on the disk. */
async function tryRoom(db: Database): Promise<void> {
  // PostgreSQL compresses long texts, so this one must not repeat itself.
  const bytes = createHash('shake256', { outputLength: (ROOM_BYTES * 3) / 4 }).update('room');
  await write(db, { name: 'room', at: bytes.digest('base64') });
  await db.deleteFrom('probes').where('name', '=', 'room').execute();
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
