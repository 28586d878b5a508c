/** Finds or creates the contact with a user id, and stores the given attributes, in one transaction. */
import type { Context } from '#api/context.ts';
import { existing } from '#api/errors.ts';
import {
  type GivenAttributes,
  type StoredAttributes,
  storeAttributes,
} from '#api/resources/contacts/attributes.ts';
import {
  type Attributes,
  attributesOf,
  findContactByUserId,
  findOrCreateContact,
} from '#api/resources/contacts/store.ts';
import { toTimestamp } from '#api/values/timestamps.ts';

type Parts = Pick<Context, 'db' | 'clock' | 'random'>;

export async function identify(
  parts: Parts,
  workspaceId: string,
  userId: string,
  given: GivenAttributes,
): Promise<Omit<StoredAttributes, 'isChanged'>> {
  const { db } = parts;
  // Most requests change nothing for a known contact, so they need no transaction and no lock.
  const contact = await findContactByUserId(db, workspaceId, userId);
  if (contact === null) return changeContact(parts, workspaceId, userId, given, true);
  const attributes = (await attributesOf(db, [contact.id])).get(contact.id) ?? {};
  if (saysAnythingNew(given, attributes)) return changeContact(parts, workspaceId, userId, given, true);
  return { contact, attributes, errors: [], messages: [] };
}

/** @throws ApiError not_found without the contact, unless it is to be created */
export function changeContact(
  { db, clock, random }: Parts,
  workspaceId: string,
  userId: string,
  given: GivenAttributes,
  isCreated: boolean,
): Promise<StoredAttributes> {
  const now = toTimestamp(clock());
  return db.transaction().execute((trx) => {
    const find = async () =>
      isCreated
        ? findOrCreateContact(trx, workspaceId, userId, now, random)
        : existing(await findContactByUserId(trx, workspaceId, userId), 'contact', userId);
    return storeAttributes(trx, workspaceId, given, find, now, random);
  });
}

function saysAnythingNew(given: GivenAttributes, stored: Attributes): boolean {
  return Object.entries(given).some(
    ([name, value]) => !Object.hasOwn(stored, name) || stored[name] !== String(value),
  );
}
