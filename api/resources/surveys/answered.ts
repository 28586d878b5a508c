/** Surveys for routes that take responses and displays. */
import type { Database } from '#api/db/schema.ts';
import { type ApiError, forbidden } from '#api/errors.ts';
import { isId } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import { type BareSurvey, selectSurveys, toBareSurvey } from './store.ts';

export interface AnsweredSurvey extends BareSurvey {
  /** Whether its workspace has a webhook, with any triggers. */
  readonly hasWebhooks: boolean;
}

/** Makes one query. */
export async function findAnsweredSurvey(db: Database, id: string): Promise<AnsweredSurvey | null> {
  if (!isId(id)) return null;
  const row = await selectSurveys(db)
    .select(({ exists, selectFrom }) => {
      const webhooks = selectFrom('webhooks').select('webhooks.id');
      return exists(webhooks.whereRef('webhooks.workspaceId', '=', 'surveys.workspaceId')).as('hasWebhooks');
    })
    .where('surveys.id', '=', id)
    .executeTakeFirst();
  return row === undefined ? null : { ...toBareSurvey(row), hasWebhooks: Boolean(row.hasWebhooks) };
}

/** Whether a survey accepts responses. It ends at its date, before a job says so. */
export function isOpen({ content }: Pick<BareSurvey, 'content'>, now: Millis): boolean {
  return content.status === 'inProgress' && (content.closeOn === null || content.closeOn > toTimestamp(now));
}

/** Returns the error for respondents if a survey accepts no responses; null if it does. */
export function closedError(survey: BareSurvey, now: Millis): ApiError | null {
  return isOpen(survey, now)
    ? null
    : forbidden('Survey is not accepting submissions', { surveyId: survey.id });
}
