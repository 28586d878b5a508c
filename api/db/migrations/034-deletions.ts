/**
 * Marks of workspaces and organizations that are being deleted, see resources/organizations/deletion.ts. A mail about a
 * workspace goes with it.
 */
export const deletions: readonly string[] = [
  ...['workspaces', 'organizations'].flatMap((table) => [
    `alter table "${table}" add column "deletingAt" text`,
    `create index "${table}_deleting" on "${table}" ("deletingAt") where "deletingAt" is not null`,
  ]),
  `alter table "mailOutbox" add column "workspaceId" text references "workspaces" ("id") on delete cascade`,
  `create index "mailOutbox_workspaceId" on "mailOutbox" ("workspaceId") where "workspaceId" is not null`,
];
