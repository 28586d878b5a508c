/**
 * Ends a survey after `autoComplete` finished responses. Counting all of them after each response would take ever
 * longer. So after a count, half as many responses as are missing are not counted. A survey that ends after a million
 * responses is counted about twenty times.
 *
 * If responses are deleted or reopened, the survey only ends later, and every edit of the survey starts the count
 * again. So deletions need no code for this. It is half of the missing responses, not all, so that rows that are added
 * by hand are noticed in time.
 *
 * The caller holds the lock of the survey.
 */
import type { Database, Timestamp } from '#api/db/schema.ts';
import { type BareSurvey, completeSurvey, isInProgress } from '#api/resources/surveys/store.ts';

/** Call it after a finished response was written. @returns whether the survey has ended */
export async function completeWhenDue(
  trx: Database,
  { content: { autoComplete }, id }: BareSurvey,
  now: Timestamp,
): Promise<boolean> {
  if (autoComplete === null || (await isFarFrom(trx, id, autoComplete))) return false;
  if (!(await isInProgress(trx, id))) return false;
  const missing = autoComplete - (await countFinished(trx, id, autoComplete));
  if (missing <= 0) return completeSurvey(trx, id, now);
  await skipNext(trx, id, { autoComplete, skips: Math.floor((missing - 1) / 2) });
  return false;
}

/** Counts the response down. @returns false if a real count is due */
async function isFarFrom(trx: Database, surveyId: string, autoComplete: number): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('countdowns')
    .set(({ eb }) => ({ skips: eb('skips', '-', 1) }))
    .where('surveyId', '=', surveyId)
    .where('autoComplete', '=', autoComplete)
    .where('skips', '>', 0)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Counts in the index `responses_finished`, up to a maximum. */
async function countFinished(trx: Database, surveyId: string, most: number): Promise<number> {
  const { count } = await trx
    .selectFrom(({ selectFrom }) =>
      selectFrom('responses')
        .select('finished')
        .where('surveyId', '=', surveyId)
        .where('finished', '=', 1)
        .limit(most)
        .as('some'),
    )
    .select(({ fn }) => fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

async function skipNext(
  trx: Database,
  surveyId: string,
  countdown: { readonly autoComplete: number; readonly skips: number },
): Promise<void> {
  await trx
    .insertInto('countdowns')
    .values({ surveyId, ...countdown })
    .onConflict((conflict) => conflict.column('surveyId').doUpdateSet(countdown))
    .execute();
}
