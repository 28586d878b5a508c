/** Contacts and their attributes. */
import { type SqlBool, sql } from 'kysely';
import type { ContactTable, Database, Decoded, Timestamp } from '#api/db/schema.ts';
import { workspaceTable } from '#api/resources/workspaces/table.ts';
import { isId, newId, type Random } from '#api/values/ids.ts';

export type Contact = Decoded<ContactTable>;

export const contacts = workspaceTable<Contact>('contacts', {
  // This is the order of the index, so a page reads no further than it reaches.
  order: ['workspaceId', 'createdAt', 'id'],
});

/** Values by attribute key, as in replies and in responses. */
export type Attributes = Readonly<Record<string, string>>;

const defaultKeys = [
  { key: 'userId', name: 'User Id', description: 'The user id of a contact', isUnique: 1 },
  { key: 'email', name: 'Email', description: 'The email of a contact', isUnique: 1 },
  { key: 'firstName', name: 'First Name', description: "Your contact's first name", isUnique: 0 },
  { key: 'lastName', name: 'Last Name', description: "Your contact's last name", isUnique: 0 },
  { key: 'language', name: 'Language', description: 'The language preference of a contact', isUnique: 0 },
] as const;

export async function insertDefaultAttributeKeys(
  db: Database,
  workspaceId: string,
  now: Timestamp,
  random: Random,
): Promise<void> {
  await db
    .insertInto('contactAttributeKeys')
    .values(
      defaultKeys.map((key) => ({
        ...key,
        id: newId(random),
        createdAt: now,
        updatedAt: now,
        workspaceId,
        type: 'default' as const,
        dataType: 'string' as const,
        isArchived: 0 as const,
      })),
    )
    .execute();
}

export async function findContact(db: Database, workspaceId: string, id: string): Promise<Contact | null> {
  if (!isId(id)) return null;
  return (await selectContact(db, workspaceId).where('id', '=', id).executeTakeFirst()) ?? null;
}

function selectContact(db: Database, workspaceId: string) {
  return db.selectFrom('contacts').selectAll().where('workspaceId', '=', workspaceId);
}

/** Selects the contacts that have a user id. */
export const isIdentified = sql<SqlBool>`"userId" is not null`;

/** Sets `updatedAt` of a contact, for example after a change of attributes. */
export async function touchContact(db: Database, id: string, now: Timestamp): Promise<void> {
  await db.updateTable('contacts').set({ updatedAt: now }).where('id', '=', id).execute();
}

export async function findContactByUserId(
  db: Database,
  workspaceId: string,
  userId: string,
): Promise<Contact | null> {
  return (await selectContact(db, workspaceId).where('userId', '=', userId).executeTakeFirst()) ?? null;
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
  const contact: Contact = { id: newId(random), workspaceId, userId, createdAt: now, updatedAt: now };
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('contacts')
    .values(contact)
    .onConflict((conflict) => conflict.columns(['workspaceId', 'userId']).doNothing())
    .executeTakeFirstOrThrow();
  if (numInsertedOrUpdatedRows === 0n) {
    const winner = await findContactByUserId(db, workspaceId, userId);
    // If it was deleted between the conflict and the read, a new one can be created.
    return winner ?? findOrCreateContact(db, workspaceId, userId, now, random);
  }
  await db
    .insertInto('contactAttributes')
    .columns(['id', 'createdAt', 'updatedAt', 'contactId', 'attributeKeyId', 'value', 'uniqueDigest'])
    .expression((from) =>
      from
        .selectFrom('contactAttributeKeys')
        .select((select) => [
          select.val(newId(random)).as('id'),
          select.val(now).as('createdAt'),
          select.val(now).as('updatedAt'),
          select.val(contact.id).as('contactId'),
          'contactAttributeKeys.id as attributeKeyId',
          select.val(userId).as('value'),
          // The index over user ids already prevents duplicates.
          select.val<string | null>(null).as('uniqueDigest'),
        ])
        .where('workspaceId', '=', workspaceId)
        .where('key', '=', 'userId'),
    )
    .execute();
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
