/** Stores what a client says about a contact: new keys, changed values. The number of queries does not depend on how many. */
import type { Kysely } from 'kysely';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { newId, type Random } from '#api/ids.ts';
import { insertAttributeKeys, listKeysOf } from './attribute-key-store.ts';
import { customKey } from './attribute-key-write.ts';
import { findTakenValues, upsertContactAttributes } from './attribute-store.ts';
import { type GivenAttributes, planAttributes } from './given-attributes.ts';
import { type Attributes, attributesOf, type Contact, touchContacts } from './store.ts';

export interface SetAttributes {
  /** All attributes of the contact, as they are now. */
  readonly attributes: Attributes;
  readonly isChanged: boolean;
  /** Why some were left out, one sentence each. */
  readonly errors: readonly string[];
}

/**
 * Call it inside a transaction. Of a key whose values are unique, a value that another contact has is left out without
 * a word: whoever may write here must not learn who else there is.
 */
export async function setAttributes(
  trx: Kysely<Database>,
  contact: Contact,
  given: GivenAttributes,
  now: Timestamp,
  random: Random,
): Promise<SetAttributes> {
  const stored = (await attributesOf(trx, [contact.id])).get(contact.id) ?? {};
  const known = await listKeysOf(trx, contact.workspaceId);
  const { values, newKeys, errors } = planAttributes(given, known);
  const made = newKeys.map((key) => customKey({ workspaceId: contact.workspaceId, key }, now, random));
  const keys = new Map([...known, ...made].map((key) => [key.key, key]));
  const changes = [...values].flatMap(([name, value]) => {
    const key = keys.get(name);
    const isSame = Object.hasOwn(stored, name) && stored[name] === value;
    return key === undefined || isSame ? [] : [{ key, attributeKeyId: key.id, value }];
  });
  const unique = changes.filter(({ key }) => key.isUnique);
  const taken = unique.length === 0 ? [] : await findTakenValues(trx, contact.id, unique);
  const takenKeyIds = new Set(taken.map(({ attributeKeyId }) => attributeKeyId));
  const kept = changes.filter(({ key }) => !takenKeyIds.has(key.id));

  await insertAttributeKeys(trx, made);
  if (kept.length === 0) return { attributes: stored, isChanged: false, errors };
  await upsertContactAttributes(
    trx,
    kept.map(({ attributeKeyId, value }) => ({
      id: newId(random),
      contactId: contact.id,
      attributeKeyId,
      value,
      createdAt: now,
      updatedAt: now,
    })),
  );
  await touchContacts(trx, [contact.id], now);
  const changed = Object.fromEntries(kept.map(({ key, value }) => [key.key, value]));
  return { attributes: { ...stored, ...changed }, isChanged: true, errors };
}
