/** The keys of contact attributes. */
import type { ContactAttributeKeyTable, Database, Decoded, Timestamp } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';
import { workspaceTable } from '#api/resources/workspaces/table.ts';
import { newId, type Random } from '#api/values/ids.ts';

export type AttributeKey = Decoded<ContactAttributeKeyTable, { isUnique: boolean }>;

/** Maximum number of keys in a workspace, including the default ones. */
export const ATTRIBUTE_KEYS_MAX = 150;
const NEW_KEY = /^[a-z][a-z0-9_]{0,254}$/;
/** Too similar to the default keys. */
const reserved: ReadonlySet<string> = new Set(['user_id', 'first_name', 'last_name']);
export const KEY_RULE =
  'must begin with a lower-case letter and have up to 255 lower-case letters, digits and underscores, and not be user_id, first_name or last_name';

export function isNewKey(name: string): boolean {
  return NEW_KEY.test(name) && !reserved.has(name);
}

export const attributeKeys = workspaceTable<AttributeKey>('contactAttributeKeys', {
  flags: ['isUnique'],
  limit: { max: ATTRIBUTE_KEYS_MAX, noun: 'attribute keys' },
});

interface GivenKey
  extends Pick<AttributeKey, 'workspaceId' | 'key'>,
    Partial<Pick<AttributeKey, 'isUnique' | 'type'>> {
  readonly name?: string | null | undefined;
  readonly description?: string | null | undefined;
  readonly dataType?: AttributeKey['dataType'] | undefined;
}

/** A key that a request creates, either explicitly or by using it. */
export function newKey(given: GivenKey, now: Timestamp, random: Random): AttributeKey {
  const { name, description, dataType = 'string', isUnique = false, type = 'custom', ...owned } = given;
  return {
    ...owned,
    id: newId(random),
    createdAt: now,
    updatedAt: now,
    name: name ?? titleOf(owned.key),
    description: description ?? '',
    isUnique,
    type,
    dataType,
  };
}

/** Turns `favorite_color` into `Favorite Color`. */
function titleOf(key: string): string {
  const words = key.split('_').filter((word) => word !== '');
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(' ') || key;
}

const defaultKeys = [
  { key: 'userId', name: 'User Id', description: 'The user id of a contact', isUnique: true },
  { key: 'email', name: 'Email', description: 'The email of a contact', isUnique: true },
  { key: 'firstName', name: 'First Name', description: "Your contact's first name" },
  { key: 'lastName', name: 'Last Name', description: "Your contact's last name" },
  { key: 'language', name: 'Language', description: 'The language preference of a contact' },
];

export async function insertDefaultAttributeKeys(
  db: Database,
  workspaceId: string,
  now: Timestamp,
  random: Random,
): Promise<void> {
  const keys = defaultKeys.map((key) => newKey({ ...key, workspaceId, type: 'default' }, now, random));
  await attributeKeys.insert(db, ...keys);
}

/**
 * Deletes the contacts' values for it first, in slices, because every contact may have one.
 *
 * @returns false if the key was gone
 */
export async function deleteAttributeKey(db: Database, id: string): Promise<boolean> {
  const values = db.selectFrom('contactAttributes').select('id').where('attributeKeyId', '=', id);
  await inSlices((rowsMax) => deleteSome(db, 'contactAttributes', values.limit(rowsMax)));
  return attributeKeys.remove(db, id);
}
