/** Creates and changes attribute keys and attribute classes, each in one transaction. */
import type { Kysely } from 'kysely';
import type { Context } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { type ApiError, forbidden } from '#api/errors.ts';
import { newId, type Random } from '#api/ids.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { ATTRIBUTE_KEYS_MAX, titleOf } from './attribute-key-rules.ts';
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
 * @param alreadyExists thrown when the workspace has the key
 * @throws ApiError forbidden when the workspace has the maximum
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

/** @param count in a workspace, including the new ones @throws ApiError forbidden */
export function checkCount(count: number): void {
  if (count > ATTRIBUTE_KEYS_MAX) {
    throw forbidden(`A workspace can have ${ATTRIBUTE_KEYS_MAX} attribute keys; delete one that is not used`);
  }
}

/**
 * Applies a change to the stored key, in one transaction.
 *
 * @param change returns the new key, or throws to refuse the change
 * @param gone thrown when the key was deleted meanwhile
 * @param alreadyExists thrown when another key of the workspace has the same name
 */
export async function changeAttributeKey(
  db: Kysely<Database>,
  id: string,
  change: (stored: AttributeKey) => AttributeKey,
  { alreadyExists, gone }: { readonly alreadyExists: ApiError; readonly gone: ApiError },
): Promise<AttributeKey> {
  return unlessTaken(KEY_OF_WORKSPACE, alreadyExists, () =>
    db.transaction().execute(async (trx) => {
      await lockRow(trx, 'contactAttributeKeys', id);
      const stored = await findAttributeKey(trx, id);
      if (stored === null) throw gone;
      const changed = change(stored);
      await updateAttributeKey(trx, changed);
      return changed;
    }),
  );
}
