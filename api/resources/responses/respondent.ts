/** Tells who answered. */
import type { Database } from '#api/db/schema.ts';
import type { Attributes } from '#api/resources/contacts/store.ts';

/** The contact of the workspace that has this id or user id. If there is none, the response is anonymous. */
export interface Respondent {
  readonly by: 'id' | 'userId';
  readonly value: string;
}

interface Answerer {
  readonly contactId: string | null;
  /** A copy of the attributes that the contact has now. */
  readonly contactAttributes: Attributes | null;
}

/** Makes one query. */
export async function answererOf(
  db: Database,
  workspaceId: string,
  respondent: Respondent | null,
): Promise<Answerer> {
  const nobody = { contactId: null, contactAttributes: null };
  if (respondent === null) return nobody;
  const rows = await db
    .selectFrom('contacts')
    .leftJoin('contactAttributes', 'contactAttributes.contactId', 'contacts.id')
    .leftJoin('contactAttributeKeys', 'contactAttributeKeys.id', 'contactAttributes.attributeKeyId')
    .select(['contacts.id', 'contactAttributeKeys.key', 'contactAttributes.value'])
    .where('contacts.workspaceId', '=', workspaceId)
    .where(`contacts.${respondent.by}`, '=', respondent.value)
    .orderBy('contactAttributeKeys.key')
    .execute();
  const [contact] = rows;
  if (contact === undefined) return nobody;
  const attributes = rows.flatMap(({ key, value }) => (key === null || value === null ? [] : [[key, value]]));
  return { contactId: contact.id, contactAttributes: Object.fromEntries(attributes) };
}
