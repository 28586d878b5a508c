/** The values that contacts have for attribute keys. */
import { createHash } from 'node:crypto';
import { isText } from '#api/db/dialect.ts';
import type { ContactAttributeTable, Database, Decoded, Timestamp } from '#api/db/schema.ts';
import type { ListPage } from '#api/http/pagination.ts';
import { newId, type Random } from '#api/values/ids.ts';

type ContactAttribute = Omit<Decoded<ContactAttributeTable>, 'uniqueDigest'>;

/**
 * Grouped by attribute key, in each oldest first, ties by id. This is the order of the index
 * `contactAttributes_list`, so a page reads no further than it reaches. A workspace has at most 150 keys, so the list
 * of keys is short.
 */
export function listContactAttributes(
  db: Database,
  workspaceIds: readonly string[],
  page: ListPage,
): Promise<readonly ContactAttribute[]> {
  return db
    .selectFrom('contactAttributes')
    .select(['id', 'createdAt', 'updatedAt', 'contactId', 'attributeKeyId', 'value'])
    .where('attributeKeyId', 'in', (keys) =>
      keys.selectFrom('contactAttributeKeys').select('id').where('workspaceId', 'in', workspaceIds),
    )
    .orderBy('attributeKeyId')
    .orderBy('createdAt')
    .orderBy('id')
    .limit(page.limit)
    .offset(page.skip)
    .execute();
}

interface KeyedValue {
  readonly attributeKeyId: string;
  readonly value: string;
}

/** Finds out which of these values another contact has. Reads the index `contactAttributes_value` once per value. */
export function findTakenValues(
  db: Database,
  contactId: string,
  wanted: readonly KeyedValue[],
): Promise<readonly KeyedValue[]> {
  return db
    .selectFrom('contactAttributes')
    .select(['attributeKeyId', 'value'])
    .distinct()
    .where((where) =>
      where.or(
        wanted.map(({ attributeKeyId, value }) =>
          where('attributeKeyId', '=', attributeKeyId).and(isText(db, 'contactAttributes.value', value)),
        ),
      ),
    )
    .where('contactId', '!=', contactId)
    .execute();
}

/** The index over values that only one contact may have, in the format of `isUniqueViolation`. */
export const UNIQUE_VALUE = ['contactAttributes.attributeKeyId', 'contactAttributes.uniqueDigest'] as const;

interface AttributeChange {
  readonly contactId: string;
  readonly attributeKeyId: string;
  readonly value: string;
  readonly isUnique: boolean;
}

/**
 * Sets values of contacts, new or changed. `changes` must not be empty.
 *
 * @throws the driver's unique violation, `UNIQUE_VALUE`, if another contact has a unique value
 */
export async function upsertContactAttributes(
  db: Database,
  changes: readonly AttributeChange[],
  now: Timestamp,
  random: Random,
): Promise<void> {
  await db
    .insertInto('contactAttributes')
    .values(
      changes.map(({ isUnique, ...row }) => ({
        ...row,
        id: newId(random),
        createdAt: now,
        updatedAt: now,
        uniqueDigest: isUnique ? digestOfValue(row.value) : null,
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

/** Returns a digest for indexes, whose entries are limited in length. It is stored, so a change needs a migration. */
function digestOfValue(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
