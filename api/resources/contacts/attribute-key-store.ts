/** The keys of contact attributes. Attribute classes are another view of the same rows. */
import type { Context } from '#api/context.ts';
import type { ContactAttributeKeyTable, Database, Decoded, Timestamp } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { type ApiError, invalidFields } from '#api/errors.ts';
import { inWorkspace, workspaceTable } from '#api/resources/workspaces/table.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { ATTRIBUTE_KEYS_MAX, keyProblem, titleOf } from './attribute-key-rules.ts';

export type AttributeKey = Decoded<ContactAttributeKeyTable, { isUnique: boolean; isArchived: boolean }>;

export const attributeKeys = workspaceTable<AttributeKey>('contactAttributeKeys', {
  flags: ['isUnique', 'isArchived'],
  locks: 'contactAttributeKeys',
  limit: { max: ATTRIBUTE_KEYS_MAX, noun: 'attribute keys' },
});

const KEY_OF_WORKSPACE = ['contactAttributeKeys.workspaceId', 'contactAttributeKeys.key'] as const;

interface GivenKey extends Pick<AttributeKey, 'workspaceId' | 'key'> {
  readonly name?: string | null | undefined;
  readonly description?: string | null | undefined;
  readonly dataType?: AttributeKey['dataType'] | undefined;
}

interface KeyChange extends Partial<Pick<AttributeKey, 'key' | 'name' | 'dataType' | 'isArchived'>> {
  readonly description?: string | null | undefined;
}

/** A key that a request creates, either explicitly or by using it. */
export function customKey(given: GivenKey, now: Timestamp, random: Random): AttributeKey {
  const { workspaceId, key, name, description, dataType = 'string' } = given;
  return {
    id: newId(random),
    workspaceId,
    createdAt: now,
    updatedAt: now,
    key,
    name: name ?? (titleOf(key) || key),
    description: description ?? '',
    isUnique: false,
    type: 'custom',
    dataType,
    isArchived: false,
  };
}

/**
 * @param alreadyExists thrown if the workspace has the key
 * @throws ApiError forbidden if the workspace has the maximum
 */
export async function createAttributeKey(
  { db, clock, random }: Pick<Context, 'db' | 'clock' | 'random'>,
  given: GivenKey,
  alreadyExists: ApiError,
): Promise<AttributeKey> {
  const key = customKey(given, toTimestamp(clock()), random);
  await unlessTaken(KEY_OF_WORKSPACE, alreadyExists, () =>
    inWorkspace(db, key.workspaceId, async (trx) => {
      await attributeKeys.refuseFull(trx, key.workspaceId);
      await attributeKeys.insert(trx, key);
    }),
  );
  return key;
}

/** @throws ApiError invalid_fields for the field `key` */
export function checkedKey(key: string): string {
  const problem = keyProblem(key);
  if (problem !== null) throw invalidFields({ key: `The key ${problem}` });
  return key;
}

/**
 * Applies a change to the stored key, in one transaction.
 *
 * @param type names the key in the error if it was deleted meanwhile
 * @param alreadyExists thrown if another key of the workspace has the same name
 * @param change returns the new fields, or throws to refuse the change. A description of null is stored as an empty
 * one.
 */
export function changeAttributeKey(
  context: Pick<Context, 'db' | 'clock'>,
  key: AttributeKey,
  type: string,
  alreadyExists: ApiError,
  change: (stored: AttributeKey) => KeyChange,
): Promise<AttributeKey> {
  return unlessTaken(KEY_OF_WORKSPACE, alreadyExists, () =>
    attributeKeys.change(context, key, type, (stored) => {
      const { description = stored.description, ...fields } = change(stored);
      return { ...fields, description: description ?? '' };
    }),
  );
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
