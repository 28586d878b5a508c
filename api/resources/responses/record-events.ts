/** Records events of responses, with the data that webhooks and follow-up mails will need. */
import type { Database, EventType } from '#api/db/schema.ts';
import { insertEvents } from '#api/events/outbox.ts';
import type { AnsweredSurvey } from '#api/resources/surveys/answered.ts';
import type { Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock } from '#shared/clock.ts';
import type { Response } from './store.ts';

export interface SurveySnapshot {
  readonly title: string;
  readonly type: string;
  readonly status: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** The data of an event, which later changes to the response or its survey must not alter. */
export interface Snapshot {
  readonly response: Response;
  readonly survey: SurveySnapshot;
}

export interface ResponseWritten {
  readonly kind: 'responseCreated' | 'responseUpdated';
  readonly response: Response;
  readonly survey: AnsweredSurvey;
  readonly isSurveyCompleted: boolean;
}

/**
 * Records the events of a change: one of its kind, and one more when the response is finished. Without webhooks, only
 * the follow-up mails of a finished response need them. Call it in the transaction of the change, after the change.
 *
 * @returns whether there are events
 */
export async function recordEvents(
  trx: Database,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  { kind, response, survey, isSurveyCompleted }: ResponseWritten,
): Promise<boolean> {
  const hasFollowUps = response.finished && survey.content.followUps.length > 0;
  if (!survey.hasWebhooks && !hasFollowUps) return false;

  const now = toTimestamp(clock());
  const snapshot: Snapshot = {
    response,
    survey: {
      title: survey.content.name,
      type: survey.content.type,
      status: isSurveyCompleted ? 'completed' : survey.content.status,
      createdAt: survey.createdAt,
      updatedAt: isSurveyCompleted ? now : survey.updatedAt,
    },
  };
  const types: readonly EventType[] = response.finished ? [kind, 'responseFinished'] : [kind];
  await insertEvents(
    trx,
    {
      types,
      workspaceId: survey.workspaceId,
      surveyId: survey.id,
      responseId: response.id,
      snapshot: JSON.stringify(snapshot),
      createdAt: now,
    },
    random,
  );
  return true;
}
