/**
 * Of an attribute key whose values are unique, a value has one contact: an index says so, not only the code that looks
 * before it writes. The index is over a digest, because values are longer than what databases take into an index.
 *
 * db/unique-values.ts computes the digests of what is there.
 */
export const uniqueValues: readonly string[] = [
  `alter table "contactAttributes" add column "uniqueDigest" text`,
  `create unique index "contactAttributes_unique" on "contactAttributes" ("attributeKeyId", "uniqueDigest")
    where "uniqueDigest" is not null`,
];
