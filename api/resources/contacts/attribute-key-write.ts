/** Making and changing attribute keys: the part that keys and attribute classes share. Each is one transaction. */
import type { Kysely } from 'kysely';
import { isUniqueViolation } from '#api/db/database.ts';
import type { Database } from '#api/db/schema.ts';
import { type ApiError, badRequest, forbidden } from '#api/errors.ts';
import { ATTRIBUTE_KEYS_MAX } from './attribute-key-rules.ts';
import {
  type AttributeKey,
  countAttributeKeys,
  findAttributeKey,
  insertAttributeKeys,
  updateAttributeKey,
} from './attribute-key-store.ts';

/**
 * @param alreadyExists what the caller reads when the workspace has the key
 * @throws ApiError bad_request when the key exists, forbidden when the workspace has as many as it can
 */
export async function createAttributeKey(
  db: Kysely<Database>,
  key: AttributeKey,
  alreadyExists: string,
): Promise<void> {
  await unlessTaken(alreadyExists, () =>
    db.transaction().execute(async (trx) => {
      if ((await countAttributeKeys(trx, key.workspaceId)) >= ATTRIBUTE_KEYS_MAX) {
        throw forbidden(
          `A workspace can have ${ATTRIBUTE_KEYS_MAX} attribute keys; delete one that is not used`,
        );
      }
      await insertAttributeKeys(trx, [key]);
    }),
  );
}

/**
 * Lays a change over the key as it is, in one transaction.
 *
 * @param change throws to refuse
 * @param gone what the caller reads when it was deleted meanwhile
 * @throws ApiError bad_request when another key of the workspace is called the same
 */
export async function changeAttributeKey(
  db: Kysely<Database>,
  id: string,
  change: (stored: AttributeKey) => AttributeKey,
  { alreadyExists, gone }: { readonly alreadyExists: string; readonly gone: ApiError },
): Promise<AttributeKey> {
  return unlessTaken(alreadyExists, () =>
    db.transaction().execute(async (trx) => {
      const stored = await findAttributeKey(trx, id);
      if (stored === null) throw gone;
      const changed = change(stored);
      await updateAttributeKey(trx, changed);
      return changed;
    }),
  );
}

async function unlessTaken<T>(alreadyExists: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isUniqueViolation(error, 'contactAttributeKeys.workspaceId', 'contactAttributeKeys.key'))
      throw error;
    throw badRequest(alreadyExists);
  }
}
