/** The permission that an API key has on every workspace of its organization; null: only on those that are listed. */
export const keysForAllWorkspaces: readonly string[] = [
  `alter table "apiKeys" add column "allWorkspaces" text`,
];
