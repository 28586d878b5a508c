/** Permission of an API key on all workspaces of its organization; null if only on the listed ones. */
export const keysForAllWorkspaces: readonly string[] = [
  `alter table "apiKeys" add column "allWorkspaces" text`,
];
