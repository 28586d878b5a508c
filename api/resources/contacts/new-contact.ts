/** Creates a contact for the management API, in one transaction. */
import { normalizeEmail } from '#api/auth/password.ts';
import type { Context } from '#api/context.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { type ApiError, badRequest, conflict, invalidFields } from '#api/errors.ts';
import { inWorkspace, newRow } from '#api/resources/workspaces/table.ts';
import { USER_ID_LENGTH_MAX } from '#api/values/content-limits.ts';
import { type GivenAttributes, takenKeys, VALUE_LENGTH_MAX, writeAttributes } from './attributes.ts';
import { attributeKeys } from './keys.ts';
import { type Attributes, type Contact, contacts } from './store.ts';

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
  const attributes = Object.fromEntries(Object.entries(given).map(([key, value]) => [key, String(value)]));
  const { email, userId = null } = attributes;
  if (email === undefined) throw invalidFields({ 'attributes.email': 'Required' });
  if (normalizeEmail(email) === null)
    throw invalidFields({ 'attributes.email': 'must be an e-mail address' });
  if (userId === '' || (userId ?? '').length > USER_ID_LENGTH_MAX)
    throw invalidFields({ 'attributes.userId': `must have 1 to ${USER_ID_LENGTH_MAX} characters` });
  const contact: Contact = { ...newRow(context, workspaceId), userId };
  await inWorkspace(context.db, workspaceId, async (trx) => {
    const keys = await attributeKeys.listAll(trx, workspaceId);
    const values = Object.entries(attributes).map(([name, value]) => {
      const key = keys.find((known) => known.key === name);
      if (key === undefined) throw keyNotFound(name);
      if (value.length > VALUE_LENGTH_MAX)
        throw invalidFields({
          [`attributes.${name}`]: `must not have more than ${VALUE_LENGTH_MAX} characters`,
        });
      return { key, value };
    });
    const [taken] = await takenKeys(trx, contact.id, values);
    if (taken !== undefined) throw alreadyExists(taken);
    await unlessTaken(['contacts.workspaceId', 'contacts.userId'], alreadyExists('userId'), () =>
      contacts.insert(trx, contact),
    );
    await writeAttributes(trx, contact.id, values, contact.createdAt, context.random);
  });
  return { contact, attributes };
}

function keyNotFound(key: string): ApiError {
  const problem = `attribute keys not found: ${key.slice(0, 64).toWellFormed()}; create it first`;
  return badRequest(problem, { attributes: problem });
}

function alreadyExists(key: string): ApiError {
  const problem = `A contact with this ${key} already exists`;
  return conflict(problem, { [key]: problem });
}
