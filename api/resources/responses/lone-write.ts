/**
 * Most responses come alone: no webhook hears of them, they end no survey, name no file, and follow no display. Such a one
 * is written by one statement, which looks in the same moment whether the survey takes responses. A transaction would ask
 * the database five times for that, and hold a connection for as long.
 */
import type { AnsweredSurvey, BareSurvey } from '#api/resources/surveys/store.ts';
import { namesFiles } from '#api/storage/claims.ts';
import type { NewResponse } from './write.ts';

/** @param survey where nobody looked for webhooks, there may be some */
export function comesAlone(
  { content, hasWebhooks = true }: BareSurvey & Partial<AnsweredSurvey>,
  response: NewResponse,
  emailDigest: string | null,
): boolean {
  const { data, displayId, finished, singleUseId } = response;
  return (
    !hasWebhooks &&
    !(finished && content.followUps.length > 0) &&
    content.autoComplete === null &&
    displayId === null &&
    singleUseId === null &&
    emailDigest === null &&
    !namesFiles(data)
  );
}
