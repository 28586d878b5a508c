/**
 * Most responses come alone: no webhook hears of them, they end no survey, and name no file. Such a one is written by one
 * statement (lone-insert.ts), which looks in the same moment whether all that was read before is still so. A transaction
 * would ask the database five times for that, and hold a connection for as long.
 */
import type { Kysely } from 'kysely';
import { isUniqueViolation } from '#api/db/database.ts';
import type { Database } from '#api/db/schema.ts';
import type { AnsweredSurvey } from '#api/resources/surveys/store.ts';
import { namesFiles } from '#api/storage/claims.ts';
import { compiledInsert, type Respondent, type Values } from './lone-insert.ts';
import { type Response, toRow } from './store.ts';

export function comesAlone(
  survey: AnsweredSurvey,
  response: Pick<Response, 'data' | 'finished' | 'singleUseId'>,
  emailDigest: string | null,
): boolean {
  const { data, finished, singleUseId } = response;
  return (
    mayComeAlone(survey) &&
    !(finished && survey.content.followUps.length > 0) &&
    singleUseId === null &&
    emailDigest === null &&
    !namesFiles(data)
  );
}

/** As far as it depends on the survey alone. */
export function mayComeAlone({ content, hasWebhooks }: AnsweredSurvey): boolean {
  return !hasWebhooks && content.autoComplete === null;
}

export type LoneResponse = Omit<Response, 'contactId' | 'contactAttributes'>;

/**
 * One statement for a response that nothing else is written with, and for what is known of its contact.
 *
 * @param respondent null: nobody. A contact that there is none of is left out
 * @param survey as it was read, which may be a while ago
 * @param scopeId the id of its workspace under which it was found, one of two
 * @returns false: it is another survey now or has gone, its workspace has a webhook or another id, or the display does not
 *   fit or has its response
 */
export async function insertLoneResponse(
  db: Kysely<Database>,
  response: LoneResponse,
  respondent: Respondent | null,
  { version, workspaceId }: AnsweredSurvey,
  scopeId: string,
): Promise<boolean> {
  const { contactId: _, contactAttributes: __, ...row } = toRow({ ...response, ...nobody });
  const values: Values = { ...row, version, scopeId, respondent: respondent?.value ?? '' };
  const { parameters, ...query } = compiledInsert(db, {
    respondentBy: respondent?.by ?? null,
    isLegacyScope: scopeId !== workspaceId,
    hasDisplay: response.displayId !== null,
  });
  try {
    const { numAffectedRows } = await db.executeQuery({
      ...query,
      parameters: parameters.map((name) => Reflect.get(values, String(name))),
    });
    return numAffectedRows === 1n;
  } catch (error) {
    if (isUniqueViolation(error, 'responses.displayId')) return false;
    throw error;
  }
}

const nobody = { contactId: null, contactAttributes: null };
