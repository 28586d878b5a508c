/** Records events of responses, with everything that webhooks and follow-up mails will need. */
import type { Context } from '#api/context.ts';
import type { Database, EventType } from '#api/db/schema.ts';
import { insertEvents } from '#api/events/outbox.ts';
import type { AnsweredSurvey } from '#api/resources/surveys/answered.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { toResponseReply } from './reply.ts';
import { type Response, withRelations } from './store.ts';

export interface ResponseWritten {
  readonly kind: 'responseCreated' | 'responseUpdated';
  readonly response: Response;
  readonly survey: AnsweredSurvey;
  readonly isSurveyCompleted: boolean;
}

/**
 * Records the events of a change: one of its kind, and one more when the response is finished. Without webhooks, only the
 * follow-up mails of a finished response need them. Call it in the transaction of the change, after the change.
 *
 * @returns whether there are events
 */
export async function recordEvents(
  trx: Database,
  parts: Pick<Context, 'clock' | 'config' | 'random'>,
  { kind, response, survey, isSurveyCompleted }: ResponseWritten,
): Promise<boolean> {
  const { content } = survey;
  const hasMails = response.finished && content.followUps.length > 0;
  if (!survey.hasWebhooks && !hasMails) return false;
  const [shown] = await withRelations(trx, [response]);
  if (shown === undefined) throw new Error('A response came back without itself');
  const data = {
    ...toResponseReply(shown, parts.config.publicUrl),
    notes: [],
    survey: {
      title: content.name,
      type: content.type,
      status: isSurveyCompleted ? 'completed' : content.status,
      createdAt: survey.createdAt,
      updatedAt: isSurveyCompleted ? toTimestamp(parts.clock()) : survey.updatedAt,
    },
  };
  const types: readonly EventType[] = response.finished ? [kind, 'responseFinished'] : [kind];
  return insertEvents(trx, parts, {
    types,
    workspaceId: survey.workspaceId,
    surveyId: survey.id,
    responseId: response.id,
    mailsOn: hasMails ? 'responseFinished' : null,
    payloadOf: (event) => JSON.stringify({ event, data }),
  });
}
