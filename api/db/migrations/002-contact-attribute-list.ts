/** The list of contact attributes reads one index: by key, the oldest first. */
export const contactAttributeList: readonly string[] = [
  `create index "contactAttributes_list" on "contactAttributes" ("attributeKeyId", "createdAt", "id")`,
];
