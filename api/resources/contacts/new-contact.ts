/** Creates a contact for the management API, in one transaction. */
import type { Context } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { againWhenTaken, unlessTaken } from '#api/db/taken.ts';
import { type ApiError, badRequest, conflict, invalidFields } from '#api/errors.ts';
import { newRow } from '#api/resources/workspaces/table.ts';
import { attributeKeys } from './attribute-key-store.ts';
import { findTakenValues, UNIQUE_VALUE, upsertContactAttributes } from './attribute-store.ts';
import { type GivenAttributes, identityProblem, shown, valueProblem } from './given-attributes.ts';
import { type Attributes, type Contact, contacts, findContactByUserId } from './store.ts';

/** Maximum number of unknown keys that an error names. */
const NAMED_MAX = 20;

interface NewContact {
  readonly contact: Contact;
  readonly attributes: Attributes;
}

/**
 * @param given with an `email`. `userId` is the id that client routes use.
 * @throws ApiError invalid_fields for an invalid value, bad_request for keys that the workspace does not have,
 *   conflict when another contact has the address or the user id
 */
export async function createContact(
  context: Pick<Context, 'db' | 'clock' | 'random'>,
  workspaceId: string,
  given: GivenAttributes,
): Promise<NewContact> {
  const texts = new Map(Object.entries(given).map(([key, value]) => [key, String(value)]));
  if (!texts.has('email')) throw invalidFields({ 'attributes.email': 'Required' });
  const contact: Contact = { ...newRow(context, workspaceId), userId: texts.get('userId') ?? null };
  // If two requests create a contact with one address at once, the second finds the contact of the first.
  return againWhenTaken(UNIQUE_VALUE, () => context.db.transaction().execute(insert));

  async function insert(trx: Database): Promise<NewContact> {
    const keys = new Map((await attributeKeys.listAll(trx, workspaceId)).map((key) => [key.key, key]));
    const unknown = [...texts.keys()].filter((key) => !keys.has(key));
    if (unknown.length > 0) throw keysNotFound(unknown);
    const values = [...texts].flatMap(([name, value]) => {
      const key = keys.get(name);
      const problem = identityProblem(name, value) ?? valueProblem(value, key);
      if (problem !== null) throw invalidFields({ [`attributes.${name}`]: problem });
      return key === undefined ? [] : [{ key, attributeKeyId: key.id, value }];
    });
    if (contact.userId !== null && (await findContactByUserId(trx, workspaceId, contact.userId)) !== null) {
      throw alreadyExists('userId');
    }
    const unique = values.filter(({ key }) => key.isUnique);
    const [taken] = await findTakenValues(trx, contact.id, unique);
    if (taken !== undefined) {
      throw alreadyExists(
        unique.find(({ attributeKeyId }) => attributeKeyId === taken.attributeKeyId)?.key.key ?? '',
      );
    }
    await unlessTaken(['contacts.workspaceId', 'contacts.userId'], alreadyExists('userId'), () =>
      contacts.insert(trx, contact),
    );
    const written = values.map(({ key: { id: attributeKeyId, isUnique }, value }) => {
      return { contactId: contact.id, attributeKeyId, value, isUnique };
    });
    await upsertContactAttributes(trx, written, contact.createdAt, context.random);
    return { contact, attributes: Object.fromEntries(texts) };
  }
}

function keysNotFound(unknown: readonly string[]): ApiError {
  const named = unknown.slice(0, NAMED_MAX).map(shown).join(', ');
  const more = unknown.length > NAMED_MAX ? ` and ${unknown.length - NAMED_MAX} more` : '';
  const problem = `attribute keys not found: ${named}${more}; create them first`;
  return badRequest(problem, { attributes: problem });
}

function alreadyExists(key: string): ApiError {
  const problem = `A contact with this ${key} already exists`;
  return conflict(problem, { [key]: problem });
}
