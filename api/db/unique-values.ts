/**
 * Computes the digests of values that were stored before their unique index. If several contacts have the same value,
 * only the oldest gets the digest. The others keep the value, but no other contact can get it, and they cannot get it
 * back after a change.
 */

import { createHash } from 'node:crypto';
import type { Database } from './schema.ts';

const PAGE = 1_000;

export async function fillUniqueValues(db: Database): Promise<void> {
  const keys = await db.selectFrom('contactAttributeKeys').select('id').where('isUnique', '=', 1).execute();
  for (const { id } of keys) await fillKey(db, id);
}

/** Pages through the values by value and age, so that the first of equal ones is the oldest. */
async function fillKey(db: Database, attributeKeyId: string): Promise<void> {
  let after: string | null = null;
  for (;;) {
    let values = db
      .selectFrom('contactAttributes')
      .select('value')
      .distinct()
      .where('attributeKeyId', '=', attributeKeyId)
      .orderBy('value')
      .limit(PAGE);
    if (after !== null) values = values.where('value', '>', after);
    const page = await values.execute();
    for (const { value } of page) {
      await db
        .updateTable('contactAttributes')
        .set({ uniqueDigest: digestOfValue(value) })
        .where('id', '=', (from) =>
          from
            .selectFrom('contactAttributes')
            .select('id')
            .where('attributeKeyId', '=', attributeKeyId)
            .where('value', '=', value)
            .orderBy('createdAt')
            .orderBy('id')
            .limit(1),
        )
        .execute();
    }
    if (page.length < PAGE) return;
    after = page.at(-1)?.value ?? null;
  }
}

/** Returns a digest for indexes, whose entries are limited in length. It is stored, so a change needs a migration. */
export function digestOfValue(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
