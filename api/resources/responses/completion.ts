/**
 * `autoComplete`: so many finished responses end the survey. Counting all of them after each one would take longer the more
 * there are, so a count says after how many others the next one is needed: half of those that are missing. A survey that
 * ends after a million is counted some twenty times.
 *
 * What is deleted meanwhile, or unfinished, only makes it later, and a change of the survey begins anew. So no deletion has
 * to know of this. Half, not all, so that what somebody adds by hand is noticed before it is too late.
 *
 * Whoever calls this holds the lock of the survey.
 */
import type { Kysely } from 'kysely';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { type BareSurvey, completeSurvey, isInProgress } from '#api/resources/surveys/store.ts';

/** After a finished response was written. @returns true: it has ended the survey */
export async function completeWhenDue(
  trx: Kysely<Database>,
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

/** Says whether it needs no count, and takes this response as one of those. */
async function isFarFrom(trx: Kysely<Database>, surveyId: string, autoComplete: number): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('countdowns')
    .set(({ eb }) => ({ skips: eb('skips', '-', 1) }))
    .where('surveyId', '=', surveyId)
    .where('autoComplete', '=', autoComplete)
    .where('skips', '>', 0)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Counts in the index `responses_finished`, up to so many. */
async function countFinished(trx: Kysely<Database>, surveyId: string, most: number): Promise<number> {
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
  trx: Kysely<Database>,
  surveyId: string,
  countdown: { readonly autoComplete: number; readonly skips: number },
): Promise<void> {
  await trx
    .insertInto('countdowns')
    .values({ surveyId, ...countdown })
    .onConflict((conflict) => conflict.column('surveyId').doUpdateSet(countdown))
    .execute();
}
