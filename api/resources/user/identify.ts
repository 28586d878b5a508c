/** Finds or creates the contact with a user id, and stores the given attributes, in one transaction. */
import type { Context } from '#api/context.ts';
import { againWhenTaken } from '#api/db/taken.ts';
import { badRequest } from '#api/errors.ts';
import { UNIQUE_VALUE } from '#api/resources/contacts/attribute-store.ts';
import { type GivenAttributes, isEmail } from '#api/resources/contacts/given-attributes.ts';
import { prepareAttributes, setAttributes } from '#api/resources/contacts/set-attributes.ts';
import {
  type Attributes,
  attributesOf,
  type Contact,
  findContactByUserId,
  findOrCreateContact,
} from '#api/resources/contacts/store.ts';
import { toTimestamp } from '#api/values/timestamps.ts';

interface Identified {
  readonly contact: Contact;
  readonly attributes: Attributes;
  /** Why attributes were left out, one sentence each. */
  readonly errors: readonly string[];
  /** Sentences about further effects. */
  readonly messages: readonly string[];
}

export async function identify(
  { db, clock, random }: Pick<Context, 'db' | 'clock' | 'random'>,
  workspaceId: string,
  userId: string,
  given: GivenAttributes,
): Promise<Identified> {
  // Most requests change nothing for a known contact, so they need no transaction and no lock.
  const known = await findContactByUserId(db, workspaceId, userId);
  if (known !== null) {
    const attributes = (await attributesOf(db, [known.id])).get(known.id) ?? {};
    if (!saysAnythingNew(given, attributes)) return { contact: known, attributes, errors: [], messages: [] };
  }
  const now = toTimestamp(clock());
  return againWhenTaken(UNIQUE_VALUE, () =>
    db.transaction().execute(async (trx) => {
      const prepared = await prepareAttributes(trx, workspaceId, given, now, random);
      const contact = await findOrCreateContact(trx, workspaceId, userId, now, random);
      const { attributes, errors, messages } = await setAttributes(trx, contact, prepared, now, random);
      return { contact, attributes, errors, messages };
    }),
  );
}

function saysAnythingNew(given: GivenAttributes, stored: Attributes): boolean {
  return Object.entries(given).some(
    ([name, value]) => !Object.hasOwn(stored, name) || stored[name] !== String(value),
  );
}

/** @throws ApiError bad_request if `email` is not an address */
export function checkEmail(given: GivenAttributes): void {
  if (Object.hasOwn(given, 'email') && !isEmail(given.email)) throw badRequest('Invalid email format');
}
