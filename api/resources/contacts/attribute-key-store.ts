/** The keys of contact attributes. Attribute classes are another view of the same rows. */
import { countRows } from '#api/db/count.ts';
import type { ContactAttributeKeyTable, Database, Decoded } from '#api/db/schema.ts';
import { inSlices } from '#api/db/slices.ts';
import type { ListPage } from '#api/http/pagination.ts';
import { ATTRIBUTE_KEYS_MAX } from './attribute-key-rules.ts';

export type AttributeKey = Decoded<ContactAttributeKeyTable, { isUnique: boolean; isArchived: boolean }>;

/** Lists the keys of several workspaces, oldest first, ties by id. */
export async function listAttributeKeys(
  db: Database,
  workspaceIds: readonly string[],
  page: ListPage,
): Promise<readonly AttributeKey[]> {
  const rows = await db
    .selectFrom('contactAttributeKeys')
    .selectAll()
    .where('workspaceId', 'in', workspaceIds)
    .orderBy('createdAt')
    .orderBy('id')
    .limit(page.limit)
    .offset(page.skip)
    .execute();
  return rows.map(toAttributeKey);
}

/** A page for all keys. Its limit is higher than the maximum of a workspace. */
const ALL_KEYS = { limit: 10 * ATTRIBUTE_KEYS_MAX, skip: 0 };

export function listKeysOf(db: Database, workspaceId: string): Promise<readonly AttributeKey[]> {
  return listAttributeKeys(db, [workspaceId], ALL_KEYS);
}

/** @returns the keys in any order; ids without a row are left out */
export async function findAttributeKeys(
  db: Database,
  ids: readonly string[],
): Promise<readonly AttributeKey[]> {
  const rows = await db.selectFrom('contactAttributeKeys').selectAll().where('id', 'in', ids).execute();
  return rows.map(toAttributeKey);
}

export async function findAttributeKey(db: Database, id: string): Promise<AttributeKey | null> {
  const row = await db.selectFrom('contactAttributeKeys').selectAll().where('id', '=', id).executeTakeFirst();
  return row === undefined ? null : toAttributeKey(row);
}

export function countAttributeKeys(db: Database, workspaceId: string): Promise<number> {
  return countRows(db.selectFrom('contactAttributeKeys').where('workspaceId', '=', workspaceId));
}

/** @throws the driver's unique violation if the workspace has the key */
export async function insertAttributeKeys(db: Database, keys: readonly AttributeKey[]): Promise<void> {
  if (keys.length === 0) return;
  await db.insertInto('contactAttributeKeys').values(keys.map(toRow)).execute();
}

/** @throws the driver's unique violation if the workspace has the key */
export async function updateAttributeKey(db: Database, key: AttributeKey): Promise<void> {
  const { id, workspaceId: _, createdAt: __, ...columns } = toRow(key);
  await db.updateTable('contactAttributeKeys').set(columns).where('id', '=', id).execute();
}

/** Deletes the contacts' values for it first, in slices, because every contact may have one. */
export async function deleteAttributeKey(db: Database, id: string): Promise<void> {
  await inSlices(async (rowsMax) => {
    const { numDeletedRows } = await db
      .deleteFrom('contactAttributes')
      .where('id', 'in', (from) =>
        from.selectFrom('contactAttributes').select('id').where('attributeKeyId', '=', id).limit(rowsMax),
      )
      .executeTakeFirst();
    return Number(numDeletedRows);
  });
  await db.deleteFrom('contactAttributeKeys').where('id', '=', id).execute();
}

function toRow(key: AttributeKey): ContactAttributeKeyTable {
  return { ...key, isUnique: key.isUnique ? 1 : 0, isArchived: key.isArchived ? 1 : 0 };
}

function toAttributeKey(row: ContactAttributeKeyTable): AttributeKey {
  return { ...row, isUnique: row.isUnique === 1, isArchived: row.isArchived === 1 };
}
