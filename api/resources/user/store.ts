/** What a contact has seen and answered, and the segments of its workspace. Reads only. */
import type { Kysely } from 'kysely';
import type { Database } from '#api/db/schema.ts';
import type { AnsweredSurvey, SeenSurvey } from '#api/resources/segments/contact-profile.ts';
import type { EvaluatedSegment } from '#api/resources/segments/evaluate.ts';

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

/** Most segments belong to a survey for everybody; those are not even parsed. */
const NO_FILTERS = '[]';

/** In the order of their titles, which are unique. */
export async function listSegmentFilters(
  db: Kysely<Database>,
  workspaceId: string,
  limit: number,
): Promise<readonly EvaluatedSegment[]> {
  const rows = await db
    .selectFrom('segments')
    .select(['id', 'filters'])
    .where('workspaceId', '=', workspaceId)
    .orderBy('title')
    .limit(limit)
    .execute();
  return rows.map(({ id, filters }) => ({ id, filters: filters === NO_FILTERS ? [] : JSON.parse(filters) }));
}
