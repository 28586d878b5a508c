/** Contacts and their attributes. */
import { sql } from 'kysely';
import { keepRow } from '#api/db/locks.ts';
import type { ContactTable, Database, Decoded, Timestamp } from '#api/db/schema.ts';
import type { ListPage } from '#api/http/pagination.ts';
import { workspaceTable } from '#api/resources/workspaces/table.ts';
import { isId, newId, type Random } from '#api/values/ids.ts';

export type Contact = Decoded<ContactTable>;

export const contacts = workspaceTable<Contact>('contacts', {
  // This is the order of the index, so a page reads no further than it reaches.
  order: ['workspaceId', 'createdAt', 'id'],
});

/** Values by attribute key, as in replies and in responses. */
export type Attributes = Readonly<Record<string, string>>;

export async function findContact(db: Database, workspaceId: string, id: string): Promise<Contact | null> {
  const contact = isId(id) ? await contacts.find(db, id) : null;
  return contact?.workspaceId === workspaceId ? contact : null;
}

/** Sets `updatedAt` of a contact, for example after a change of attributes. */
export async function touchContact(db: Database, id: string, now: Timestamp): Promise<void> {
  await db.updateTable('contacts').set({ updatedAt: now }).where('id', '=', id).execute();
}

export async function findContactByUserId(
  db: Database,
  workspaceId: string,
  userId: string,
): Promise<Contact | null> {
  const ofWorkspace = db.selectFrom('contacts').selectAll().where('workspaceId', '=', workspaceId);
  return (await ofWorkspace.where('userId', '=', userId).executeTakeFirst()) ?? null;
}

/**
 * Finds the contact with this user id, or creates it with its attribute `userId`. Call it inside a transaction. Two
 * calls at once get the same contact, because the unique index lets only one create it.
 */
export async function findOrCreateContact(
  db: Database,
  workspaceId: string,
  userId: string,
  now: Timestamp,
  random: Random,
): Promise<Contact> {
  const known = await findContactByUserId(db, workspaceId, userId);
  if (known !== null) return known;
  // Another request that stores attributes may hold the workspace, and may be creating the same contact.
  await keepRow(db, 'workspaces', workspaceId);
  const contact: Contact = { id: newId(random), workspaceId, userId, createdAt: now, updatedAt: now };
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('contacts')
    .values(contact)
    .onConflict((conflict) => conflict.columns(['workspaceId', 'userId']).doNothing())
    .executeTakeFirstOrThrow();
  // If the other one was deleted between the conflict and the read, a new one can be created.
  if (numInsertedOrUpdatedRows === 0n) return findOrCreateContact(db, workspaceId, userId, now, random);
  const key = await db
    .selectFrom('contactAttributeKeys')
    .select('id')
    .where('workspaceId', '=', workspaceId)
    .where('key', '=', 'userId')
    .executeTakeFirst();
  if (key === undefined) return contact;
  const row = { id: newId(random), createdAt: now, updatedAt: now, contactId: contact.id, value: userId };
  // The index over user ids already prevents duplicates.
  const attribute = { ...row, attributeKeyId: key.id, uniqueDigest: null };
  await db.insertInto('contactAttributes').values(attribute).execute();
  return contact;
}

/** Returns the attributes of several contacts, by contact id. A contact without attributes is absent. */
export async function attributesOf(
  db: Database,
  contactIds: readonly string[],
): Promise<ReadonlyMap<string, Attributes>> {
  if (contactIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('contactAttributes')
    .innerJoin('contactAttributeKeys', 'contactAttributeKeys.id', 'contactAttributes.attributeKeyId')
    .select(['contactAttributes.contactId', 'contactAttributeKeys.key', 'contactAttributes.value'])
    .where('contactAttributes.contactId', 'in', contactIds)
    .orderBy('contactAttributeKeys.key')
    .execute();
  const byContact = Map.groupBy(rows, ({ contactId }) => contactId);
  return new Map(
    [...byContact].map(([id, own]) => [id, Object.fromEntries(own.map(({ key, value }) => [key, value]))]),
  );
}

/** Finds a contact that has a user id. */
export async function findPerson(db: Database, id: string) {
  const contact = await contacts.find(db, id);
  const [person = null] = contact === null ? [] : await toPeople(db, [contact]);
  return person;
}

/** Lists contacts that have a user id, with their attributes, which count for the size of a page. */
export async function listPeople(db: Database, workspaceIds: readonly string[], page: ListPage) {
  return toPeople(db, await contacts.list(db, workspaceIds, page, sql`"userId" is not null`));
}

async function toPeople(db: Database, found: readonly Contact[]) {
  const attributes = await attributesOf(
    db,
    found.map(({ id }) => id),
  );
  return found.flatMap(({ userId, ...contact }) =>
    userId === null ? [] : [{ ...contact, userId, attributes: { ...attributes.get(contact.id) } }],
  );
}

/**
 * Grouped by attribute key, in each oldest first, ties by id. This is the order of the index
 * `contactAttributes_list`, so a page reads no further than it reaches. A workspace has at most 150 keys, so the list
 * of keys is short.
 */
export function listContactAttributes(db: Database, workspaceIds: readonly string[], page: ListPage) {
  return db
    .selectFrom('contactAttributes')
    .select(['id', 'createdAt', 'updatedAt', 'contactId', 'attributeKeyId', 'value'])
    .where('attributeKeyId', 'in', (keys) =>
      keys.selectFrom('contactAttributeKeys').select('id').where('workspaceId', 'in', workspaceIds),
    )
    .orderBy('attributeKeyId')
    .orderBy('createdAt')
    .orderBy('id')
    .limit(page.limit)
    .offset(page.skip)
    .execute();
}
