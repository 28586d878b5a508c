/** The list of contact attributes needs one index: by key, oldest first. */
export const contactAttributeList: readonly string[] = [
  `create index "contactAttributes_list" on "contactAttributes" ("attributeKeyId", "createdAt", "id")`,
];
