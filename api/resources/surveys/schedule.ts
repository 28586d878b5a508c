/**
 * Surveys that start and end by themselves, at `publishOn` and `closeOn`. An index on the two columns finds those
 * that are due.
 *
 * A survey ends when its date has come, unless it is a draft. It starts when it is `scheduled`, or a draft whose date
 * was in the future when it was last written. A draft with a date that was past already stays a draft.
 */
import type { ExpressionBuilder } from 'kysely';
import { unlocked } from '#api/db/locks.ts';
import type { Database, Tables, Timestamp } from '#api/db/schema.ts';

interface ChangedSurvey {
  readonly workspaceId: string;
}

/** Maximum number of surveys that one call changes. The next call continues. */
const SURVEYS_MAX = 200;

export async function closeDueSurveys(db: Database, now: Timestamp): Promise<readonly ChangedSurvey[]> {
  return (
    db
      .updateTable('surveys')
      .set({ status: 'completed', updatedAt: now })
      .where('id', 'in', unlocked(db, dueToClose(db, now)))
      // Repeat the condition for databases in which the survey may change between the choice and the write.
      .where(mayClose(now))
      .returning('workspaceId')
      .execute()
  );
}

/** Starts surveys that are due, unless their end is due as well. */
export async function publishDueSurveys(db: Database, now: Timestamp): Promise<readonly ChangedSurvey[]> {
  return db
    .updateTable('surveys')
    .set({ status: 'inProgress', updatedAt: now })
    .where('id', 'in', unlocked(db, dueToPublish(db, now)))
    .where(mayPublish(now))
    .returning('workspaceId')
    .execute();
}

export function dueToClose(db: Database, now: Timestamp) {
  return db.selectFrom('surveys').select('id').where(mayClose(now)).limit(SURVEYS_MAX);
}

export function dueToPublish(db: Database, now: Timestamp) {
  return db.selectFrom('surveys').select('id').where(mayPublish(now)).limit(SURVEYS_MAX);
}

type Where = ExpressionBuilder<Tables, 'surveys'>;

function mayClose(now: Timestamp) {
  return (where: Where) =>
    where.and([where('status', 'in', ['scheduled', 'inProgress', 'paused']), where('closeOn', '<=', now)]);
}

function mayPublish(now: Timestamp) {
  return (where: Where) =>
    where.and([
      where('status', 'in', ['scheduled', 'draft']),
      where('publishOn', '<=', now),
      where.or([where('closeOn', 'is', null), where('closeOn', '>', now)]),
      where.or([where('status', '=', 'scheduled'), where('publishOn', '>', where.ref('updatedAt'))]),
    ]);
}
