/** Queries for responses. They write only to `responses`, and also read contacts. */
import type { Database, Decoded, ResponseTable } from '#api/db/schema.ts';
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

/** Lists responses, newest first, ties by id. */
export async function listResponses(
  db: Database,
  workspaceIds: readonly string[],
  filter: Filter,
  { limit, skip }: ListPage,
): Promise<readonly { readonly id: string }[]> {
  const matching = await matchingResponses(db, workspaceIds, filter);
  return matching
    .select('id')
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(skip)
    .execute();
}

interface Filter {
  readonly surveyId?: string | undefined;
  readonly contactId?: string | undefined;
}

/**
 * Returns a query for the responses of workspaces, of a survey or of a contact. A survey and a contact have one workspace,
 * as their responses. So the workspace is checked first and is no condition, because the database might choose its index.
 */
export async function matchingResponses(
  db: Database,
  workspaceIds: readonly string[],
  { surveyId, contactId }: Filter,
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
