/** The values that contacts have for attribute keys, and the rules for those that clients send. */
import { createHash } from 'node:crypto';
import { lockRow } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { ATTRIBUTE_KEYS_MAX, type AttributeKey, attributeKeys, isNewKey, KEY_RULE, newKey } from './keys.ts';
import { type Attributes, attributesOf, type Contact, touchContact } from './store.ts';

/** Values by attribute key, as clients send them. */
export type GivenAttributes = Readonly<Record<string, string | number | boolean>>;

export interface StoredAttributes {
  readonly contact: Contact;
  /** All attributes of the contact, after the change. */
  readonly attributes: Attributes;
  readonly isChanged: boolean;
  /** Why attributes were left out, one sentence each. */
  readonly errors: readonly string[];
  /** Sentences about further effects. */
  readonly messages: readonly string[];
}

export const VALUE_LENGTH_MAX = 2_048;
/** Maximum number of sentences. */
const ERRORS_MAX = 50;
/** Maximum number of characters of an invalid key that an error repeats. */
const SHOWN_LENGTH_MAX = 64;

/** A value for a key of the workspace. */
export interface KeyedValue {
  readonly key: AttributeKey;
  readonly value: string;
}

/**
 * Stores the attributes that a client sends for a contact: new keys and changed values. Call it inside a transaction. If
 * another contact has a unique value, the value is left out silently: everybody may call the client API, and must not
 * learn which contacts exist. The number of queries does not depend on the number of attributes.
 *
 * @param contactOf finds the contact, after the workspace was locked
 */
export async function storeAttributes(
  trx: Database,
  workspaceId: string,
  given: GivenAttributes,
  contactOf: () => Promise<Contact>,
  now: Timestamp,
  random: Random,
): Promise<StoredAttributes> {
  const read = async () => planAttributes(given, await attributeKeys.listAll(trx, workspaceId));
  let plan = await read();
  if (plan.newKeys.length > 0 || plan.values.some(({ key }) => key.isUnique)) {
    // Another request may have created the same keys since the read, or may be storing the same unique value.
    await lockRow(trx, 'workspaces', workspaceId);
    plan = await read();
  }
  const made = plan.newKeys.map(({ key, value }) => ({
    key: newKey({ workspaceId, key }, now, random),
    value,
  }));
  await attributeKeys.insert(trx, ...made.map(({ key }) => key));
  const messages = made.map(({ key }) => `Created the attribute "${key.key}" with the type ${key.dataType}`);

  const contact = await contactOf();
  await lockRow(trx, 'contacts', contact.id);
  const stored = (await attributesOf(trx, [contact.id])).get(contact.id) ?? {};
  const changes = [...plan.values, ...made].filter(
    ({ key: { key }, value }) => !Object.hasOwn(stored, key) || stored[key] !== value,
  );
  const taken = await takenKeys(trx, contact.id, changes);
  const kept = changes.filter(({ key }) => !taken.has(key.key));
  await writeAttributes(trx, contact.id, kept, now, random);
  const isChanged = kept.length > 0;
  if (isChanged) await touchContact(trx, contact.id, now);
  const changed = Object.fromEntries(kept.map(({ key, value }) => [key.key, value]));
  return { contact, attributes: { ...stored, ...changed }, isChanged, errors: plan.errors, messages };
}

/** Decides which attributes are stored, and with which text. Pure. */
export function planAttributes(given: GivenAttributes, keys: readonly AttributeKey[]) {
  const known = new Map(keys.map((key) => [key.key, key]));
  const values: KeyedValue[] = [];
  const newKeys: { readonly key: string; readonly value: string }[] = [];
  const errors: string[] = [];
  const refuse = (name: string, problem: string): void => {
    const isLong = name.length > SHOWN_LENGTH_MAX;
    const shown = isLong ? `${name.slice(0, SHOWN_LENGTH_MAX).toWellFormed()}…` : name;
    if (errors.length < ERRORS_MAX) errors.push(`The attribute "${shown}" was not stored: ${problem}`);
  };
  for (const [name, sent] of Object.entries(given)) {
    // The first two identify the contact, so they cannot be set.
    if (name === 'userId' || name === 'id' || isBlankLanguage(name, sent)) continue;
    const key = known.get(name);
    const value = String(sent);
    if (value.length > VALUE_LENGTH_MAX)
      refuse(name, `its value is longer than ${VALUE_LENGTH_MAX} characters`);
    else if (key !== undefined) values.push({ key, value });
    else if (!isNewKey(name)) refuse(name, `its key ${KEY_RULE}`);
    else if (keys.length + newKeys.length >= ATTRIBUTE_KEYS_MAX)
      refuse(name, `the workspace has ${ATTRIBUTE_KEYS_MAX} attribute keys, which is the maximum`);
    else newKeys.push({ key: name, value });
  }
  return { values, newKeys, errors };
}

/** Whether the value is a blank language, which is ignored silently. */
function isBlankLanguage(name: string, value: unknown): boolean {
  return name === 'language' && (typeof value !== 'string' || value.trim() === '');
}

/**
 * Finds out which of these keys must be unique and have this value with another contact. Lock the workspace first.
 *
 * @returns the names of the keys
 */
export async function takenKeys(
  trx: Database,
  contactId: string,
  wanted: readonly KeyedValue[],
): Promise<ReadonlySet<string>> {
  const unique = wanted.filter(({ key }) => key.isUnique);
  if (unique.length === 0) return new Set();
  const rows = await trx
    .selectFrom('contactAttributes')
    .select('attributeKeyId')
    .where(({ or, and }) =>
      or(unique.map(({ key, value }) => and({ attributeKeyId: key.id, uniqueDigest: digestOf(value) }))),
    )
    .where('contactId', '!=', contactId)
    .execute();
  const ids = new Set(rows.map(({ attributeKeyId }) => attributeKeyId));
  return new Set(unique.flatMap(({ key }) => (ids.has(key.id) ? [key.key] : [])));
}

/** Sets values of a contact, new or changed. */
export async function writeAttributes(
  trx: Database,
  contactId: string,
  values: readonly KeyedValue[],
  now: Timestamp,
  random: Random,
): Promise<void> {
  if (values.length === 0) return;
  await trx
    .insertInto('contactAttributes')
    .values(
      values.map(({ key, value }) => ({
        ...{ id: newId(random), createdAt: now, updatedAt: now, contactId, attributeKeyId: key.id, value },
        uniqueDigest: key.isUnique ? digestOf(value) : null,
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(['contactId', 'attributeKeyId']).doUpdateSet((set) => ({
        value: set.ref('excluded.value'),
        uniqueDigest: set.ref('excluded.uniqueDigest'),
        updatedAt: set.ref('excluded.updatedAt'),
      })),
    )
    .execute();
}

/** Returns a digest for the index, whose entries are limited in length. It is stored, so a change needs a migration. */
function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
