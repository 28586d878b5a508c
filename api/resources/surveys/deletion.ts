/**
 * Deletes a survey with its responses and displays. A large survey takes a while, so it is closed first, and then its
 * responses and displays are deleted in slices. After an interruption the survey is closed, and the same request
 * finishes the work.
 */
import type { Context } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';
import { removeFiles } from '#api/storage/files.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { deleteSurvey, type Survey } from './store.ts';

/** Deletes a survey for a caller, and purges the states of SDKs. @returns false if it was gone */
export async function removeSurvey(
  context: Pick<Context, 'db' | 'clock' | 'states'>,
  survey: Survey,
): Promise<boolean> {
  if (!(await deleteSurveyWithContent(context.db, survey, toTimestamp(context.clock())))) return false;
  context.states.purge(survey.workspaceId);
  return true;
}

async function deleteSurveyWithContent(
  db: Database,
  { id, workspaceId }: Pick<Survey, 'id' | 'workspaceId'>,
  now: Timestamp,
): Promise<boolean> {
  await db.updateTable('surveys').set({ status: 'completed', updatedAt: now }).where('id', '=', id).execute();
  for (const table of ['responses', 'displays'] as const) {
    await inSlices((rowsMax) =>
      db.transaction().execute(async (trx) => {
        // If two requests delete the same survey, one waits.
        await lockRow(trx, 'surveys', id);
        const some = trx.selectFrom(table).select('id').where('surveyId', '=', id).limit(rowsMax);
        return deleteSome(trx, table, some);
      }),
    );
  }
  return db.transaction().execute(async (trx) => {
    await lockRow(trx, 'workspaces', workspaceId);
    if (!(await deleteSurvey(trx, id))) return false;
    await removeFiles(trx, { surveyId: id }, now);
    return true;
  });
}
