/** The displays and responses of a contact. Reads only. */
import type { Kysely } from 'kysely';
import type { Database } from '#api/db/schema.ts';
import type { AnsweredSurvey, SeenSurvey } from '#api/resources/segments/contact-profile.ts';

/** The newest first, ties by id. */
export function listDisplaysOfContact(
  db: Kysely<Database>,
  contactId: string,
  limit: number,
): Promise<readonly SeenSurvey[]> {
  return db
    .selectFrom('displays')
    .select(['surveyId', 'createdAt'])
    .where('contactId', '=', contactId)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}

/** The newest first, ties by id. */
export async function listResponsesOfContact(
  db: Kysely<Database>,
  contactId: string,
  limit: number,
): Promise<readonly AnsweredSurvey[]> {
  const rows = await db
    .selectFrom('responses')
    .select(['surveyId', 'createdAt', 'updatedAt', 'finished'])
    .where('contactId', '=', contactId)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
  return rows.map((row) => ({ ...row, finished: row.finished === 1 }));
}
