/**
 * Enforces unique values of attribute keys with an index, not only in the code. The index uses a digest, because values
 * may be too long for an index. db/unique-values.ts computes digests of existing values.
 */
export const uniqueValues: readonly string[] = [
  `alter table "contactAttributes" add column "uniqueDigest" text`,
  `create unique index "contactAttributes_unique" on "contactAttributes" ("attributeKeyId", "uniqueDigest")
    where "uniqueDigest" is not null`,
];
