/**
 * Stores the attributes that a client sends for a contact: new keys and changed values. The number of queries does
 * not depend on the number of attributes.
 */
import { hasManyWriters, lockRow } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import type { Random } from '#api/values/ids.ts';
import { type AttributeKey, attributeKeys, customKey } from './attribute-key-store.ts';
import { findTakenValues, upsertContactAttributes } from './attribute-store.ts';
import { type GivenAttributes, planAttributes } from './given-attributes.ts';
import { type Attributes, attributesOf, type Contact, touchContact } from './store.ts';

interface SetAttributes {
  /** All attributes of the contact, after the change. */
  readonly attributes: Attributes;
  readonly isChanged: boolean;
  /** Why attributes were left out, one sentence each. */
  readonly errors: readonly string[];
  /** Sentences about further effects. */
  readonly messages: readonly string[];
}

/** The values to store. Their keys exist. */
interface PreparedAttributes {
  readonly values: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, AttributeKey>;
  readonly errors: readonly string[];
  readonly messages: readonly string[];
}

/**
 * Creates the keys that the workspace does not have yet. Call it inside a transaction, before the contact is read: a
 * workspace is locked before its contacts.
 */
export async function prepareAttributes(
  trx: Database,
  workspaceId: string,
  given: GivenAttributes,
  now: Timestamp,
  random: Random,
): Promise<PreparedAttributes> {
  let known = await attributeKeys.listAll(trx, workspaceId);
  let plan = planAttributes(given, known);
  if (plan.newKeys.length > 0 && hasManyWriters(trx)) {
    // Lock only for new keys, which are rare, because another request may have created the same keys since the read.
    await lockRow(trx, 'workspaces', workspaceId);
    known = await attributeKeys.listAll(trx, workspaceId);
    plan = planAttributes(given, known);
  }
  const made = plan.newKeys.map((key) => customKey({ workspaceId, key }, now, random));
  await attributeKeys.insert(trx, ...made);
  const keys = new Map([...known, ...made].map((key) => [key.key, key]));
  const messages = made.map(
    ({ key, dataType }) => `Created the attribute "${key}" with the type ${dataType}`,
  );
  return { values: plan.values, keys, errors: plan.errors, messages };
}

/**
 * Call it inside a transaction. If another contact has a unique value, the value is left out silently: everybody may
 * call the client API, and must not learn which contacts exist.
 *
 * @throws the driver's unique violation, `UNIQUE_VALUE`, if another contact gets such a value at the same time
 */
export async function setAttributes(
  trx: Database,
  contact: Contact,
  { errors, messages, keys, values }: PreparedAttributes,
  now: Timestamp,
  random: Random,
): Promise<SetAttributes> {
  await lockRow(trx, 'contacts', contact.id);
  const stored = (await attributesOf(trx, [contact.id])).get(contact.id) ?? {};
  const changes = [...values].flatMap(([name, value]) => {
    const key = keys.get(name);
    const isSame = Object.hasOwn(stored, name) && stored[name] === value;
    return key === undefined || isSame ? [] : [{ key, attributeKeyId: key.id, value }];
  });
  const unique = changes.filter(({ key }) => key.isUnique);
  const taken = unique.length === 0 ? [] : await findTakenValues(trx, contact.id, unique);
  const takenKeyIds = new Set(taken.map(({ attributeKeyId }) => attributeKeyId));
  const kept = changes.filter(({ key }) => !takenKeyIds.has(key.id));

  if (kept.length === 0) return { attributes: stored, isChanged: false, errors, messages };
  const { id: contactId } = contact;
  const written = kept.map(({ key: { id: attributeKeyId, isUnique }, value }) => {
    return { contactId, attributeKeyId, value, isUnique };
  });
  await upsertContactAttributes(trx, written, now, random);
  await touchContact(trx, contact.id, now);
  const changed = Object.fromEntries(kept.map(({ key, value }) => [key.key, value]));
  return { attributes: { ...stored, ...changed }, isChanged: true, errors, messages };
}
