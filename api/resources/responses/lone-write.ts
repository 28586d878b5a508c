/**
 * Most responses come alone: no webhook hears of them, they end no survey, name no file, and follow no display. Such a one
 * is written by one statement, which looks in the same moment whether the survey takes responses. A transaction would ask
 * the database five times for that, and hold a connection for as long.
 */
import { type Kysely, sql } from 'kysely';
import type { Database } from '#api/db/schema.ts';
import type { AnsweredSurvey, BareSurvey } from '#api/resources/surveys/store.ts';
import { namesFiles } from '#api/storage/claims.ts';
import { type Response, toRow } from './store.ts';

/** @param survey where nobody looked for webhooks, there may be some */
export function comesAlone(
  { content, hasWebhooks = true }: BareSurvey & Partial<AnsweredSurvey>,
  response: Pick<Response, 'data' | 'displayId' | 'finished' | 'singleUseId'>,
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

/**
 * One statement for a response that nothing else is written with. A contact that was deleted meanwhile is left out.
 *
 * @param mustBeOpen only where its survey takes responses at this moment
 * @returns false: it does not, or has gone
 */
export async function insertLoneResponse(
  db: Kysely<Database>,
  response: Response,
  mustBeOpen: boolean,
): Promise<boolean> {
  const { contactId, finished, ...texts } = toRow(response);
  const names = Object.keys(texts) as (keyof typeof texts)[];
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('responses')
    .columns([...names, 'finished', 'contactId'])
    .expression(({ selectFrom, val }) => {
      const survey = selectFrom('surveys')
        .select(names.map((name) => val(texts[name]).as(name)))
        // A number among parameters of unknown types.
        .select(sql.lit(finished).as('finished'))
        .select(({ selectFrom }) =>
          selectFrom('contacts').select('contacts.id').where('contacts.id', '=', contactId).as('contactId'),
        )
        .where('surveys.id', '=', response.surveyId);
      if (!mustBeOpen) return survey;
      return survey.where('surveys.status', '=', 'inProgress').where('surveys.archivedAt', 'is', null);
    })
    .executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}
