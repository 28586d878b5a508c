/** Queries for responses. They write only to `responses`, and also read contacts. */
import type { Database, Decoded, ResponseTable, Timestamp } from '#api/db/schema.ts';
import type { ListPage } from '#api/http/pagination.ts';
import { type Attributes, attributesOf, type Contact, contacts } from '#api/resources/contacts/store.ts';
import { workspaceTable } from '#api/resources/workspaces/table.ts';
import { isId } from '#api/values/ids.ts';
import type { Times } from './answers.ts';
import type { Answers, ResponseMeta } from './schema.ts';

interface Decodings {
  finished: boolean;
  data: Answers;
  variables: Readonly<Record<string, string | number>>;
  ttc: Times;
  meta: ResponseMeta;
  contactAttributes: Attributes | null;
}
export type Response = Decoded<ResponseTable, Decodings>;

/** A response with the other rows that replies show. */
export interface ResponseWithRelations extends Response {
  readonly contact: (Contact & { readonly attributes: Attributes }) | null;
}

export const responses = workspaceTable<Response>('responses', {
  flags: ['finished'],
  json: ['data', 'variables', 'ttc', 'meta', 'contactAttributes'],
});

/** @param id may be any text */
export async function findResponse(db: Database, id: string): Promise<Response | null> {
  return isId(id) ? responses.find(db, id) : null;
}

/** Lists responses, newest first, ties by id. Reads the index only up to the end of the page. */
export async function listResponses(
  db: Database,
  owner: { readonly column: 'surveyId' | 'workspaceId'; readonly id: string },
  page: ListPage,
): Promise<readonly { readonly id: string }[]> {
  return db
    .selectFrom('responses')
    .select('id')
    .where(owner.column, '=', owner.id)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit)
    .offset(page.skip)
    .execute();
}

/**
 * Lists responses of several workspaces, newest first, ties by id. The database merges the indexes of the workspaces up
 * to the end of the page, and reads only the rows of the page. A key has access to the workspaces of one organization,
 * at most 100.
 */
export async function listResponsesOfWorkspaces(
  db: Database,
  workspaceIds: readonly string[],
  page: ListPage,
): Promise<readonly { readonly id: string }[]> {
  const [first, ...others] = workspaceIds;
  if (first === undefined) return [];
  if (others.length === 0) return listResponses(db, { column: 'workspaceId', id: first }, page);
  const ofWorkspace = (id: string) =>
    db.selectFrom('responses').select(['id', 'createdAt']).where('workspaceId', '=', id);
  const merged = others.reduce((all, id) => all.unionAll(ofWorkspace(id)), ofWorkspace(first));
  return merged
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit)
    .offset(page.skip)
    .execute();
}

/**
 * Returns a query for the responses of workspaces, of a survey or of a contact. A survey and a contact have one workspace,
 * as their responses. So the workspace is checked first and is no condition, because the database might choose its index.
 */
export async function matchingResponses(
  db: Database,
  workspaceIds: readonly string[],
  { surveyId, contactId }: { readonly surveyId?: string; readonly contactId?: string },
) {
  const all = db.selectFrom('responses');
  if (surveyId === undefined && contactId === undefined) return all.where('workspaceId', 'in', workspaceIds);
  const isReadableIn = async (table: 'surveys' | 'contacts', id: string): Promise<boolean> =>
    (await db
      .selectFrom(table)
      .select('id')
      .where('id', '=', id)
      .where('workspaceId', 'in', workspaceIds)
      .executeTakeFirst()) !== undefined;
  const isReadable =
    (surveyId === undefined || (await isReadableIn('surveys', surveyId))) &&
    (contactId === undefined || (await isReadableIn('contacts', contactId)));
  let matching = all;
  if (surveyId !== undefined) matching = matching.where('surveyId', '=', isReadable ? surveyId : '');
  if (contactId !== undefined) matching = matching.where('contactId', '=', isReadable ? contactId : '');
  return matching;
}

/** Adds the related rows. A fixed number of queries for any number of responses. */
export async function withRelations(
  db: Database,
  responses: readonly Response[],
): Promise<readonly ResponseWithRelations[]> {
  if (responses.length === 0) return [];
  const contactIds = [...new Set(responses.flatMap(({ contactId }) => contactId ?? []))];
  const found = await contacts.findAll(db, contactIds);
  const attributes = await attributesOf(db, contactIds);
  const contactOf = new Map(
    found.map((contact) => [contact.id, { ...contact, attributes: attributes.get(contact.id) ?? {} }]),
  );
  return responses.map((response) => ({
    ...response,
    contact: response.contactId === null ? null : (contactOf.get(response.contactId) ?? null),
  }));
}

/**
 * Writes only the columns that a change can affect. SQLite moves the index entry of every column that is written, even
 * to the same value, and with a million responses each move is a page elsewhere.
 */
export async function updateResponse(db: Database, response: Response): Promise<void> {
  const { endingId, id, language, updatedAt } = response;
  await db
    .updateTable('responses')
    .set({
      endingId,
      language,
      updatedAt,
      finished: response.finished ? 1 : 0,
      data: JSON.stringify(response.data),
      variables: JSON.stringify(response.variables),
      ttc: JSON.stringify(response.ttc),
      meta: JSON.stringify(response.meta),
    })
    .where('id', '=', id)
    .execute();
}

/** @returns the display of the response; null if the response was gone */
export async function deleteResponse(db: Database, id: string): Promise<Pick<Response, 'displayId'> | null> {
  const row = await db.deleteFrom('responses').where('id', '=', id).returning('displayId').executeTakeFirst();
  return row ?? null;
}

/** @throws the driver's unique violation if another response has the display */
export async function setResponseDisplay(
  db: Database,
  id: string,
  displayId: string,
  now: Timestamp,
): Promise<void> {
  await db.updateTable('responses').set({ displayId, updatedAt: now }).where('id', '=', id).execute();
}

export async function findResponseIdOfDisplay(db: Database, displayId: string): Promise<string | null> {
  const row = await db
    .selectFrom('responses')
    .select('id')
    .where('displayId', '=', displayId)
    .executeTakeFirst();
  return row?.id ?? null;
}
