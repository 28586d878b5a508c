/** Creates and changes attribute keys and attribute classes, each in one transaction. */
import type { Context } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Timestamp } from '#api/db/schema.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { type ApiError, forbidden, invalidFields } from '#api/errors.ts';
import { newId, type Random } from '#api/ids.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { ATTRIBUTE_KEYS_MAX, keyProblem, titleOf } from './attribute-key-rules.ts';
import {
  type AttributeKey,
  countAttributeKeys,
  findAttributeKey,
  insertAttributeKeys,
  updateAttributeKey,
} from './attribute-key-store.ts';

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
    key,
    name: name ?? (titleOf(key) || key),
    description: description ?? '',
    isUnique: false,
    type: 'custom',
    dataType,
    isArchived: false,
    createdAt: now,
    updatedAt: now,
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
    db.transaction().execute(async (trx) => {
      await lockRow(trx, 'workspaces', key.workspaceId);
      checkCount((await countAttributeKeys(trx, key.workspaceId)) + 1);
      await insertAttributeKeys(trx, [key]);
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

/** @param count in a workspace, including the new ones @throws ApiError forbidden */
export function checkCount(count: number): void {
  if (count > ATTRIBUTE_KEYS_MAX) {
    throw forbidden(`A workspace can have ${ATTRIBUTE_KEYS_MAX} attribute keys; delete one that is not used`);
  }
}

/**
 * Applies a change to the stored key, in one transaction.
 *
 * @param change returns the new fields, or throws to refuse the change. A description of null is stored as an empty
 * one.
 * @param gone thrown if the key was deleted meanwhile
 * @param alreadyExists thrown if another key of the workspace has the same name
 */
export async function changeAttributeKey(
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  id: string,
  change: (stored: AttributeKey) => KeyChange,
  { alreadyExists, gone }: { readonly alreadyExists: ApiError; readonly gone: ApiError },
): Promise<AttributeKey> {
  return unlessTaken(KEY_OF_WORKSPACE, alreadyExists, () =>
    db.transaction().execute(async (trx) => {
      await lockRow(trx, 'contactAttributeKeys', id);
      const stored = await findAttributeKey(trx, id);
      if (stored === null) throw gone;
      const { description = stored.description, ...fields } = change(stored);
      const updatedAt = toTimestamp(clock());
      const changed = { ...stored, ...fields, description: description ?? '', updatedAt };
      await updateAttributeKey(trx, changed);
      return changed;
    }),
  );
}
