/**
 * Expiry and quotas: unclaimed files, bytes of files, unverified accounts. Existing files count as claimed, so that
 * none is deleted.
 */
export const lifecycles: readonly string[] = [
  `alter table "files" add column "countedBytes" integer not null default 0`,
  `alter table "files" add column "claimedAt" text`,
  `alter table "files" add column "removedAt" text`,
  `update "files" set "countedBytes" = coalesce("size", 0), "claimedAt" = "createdAt"`,
  `create index "files_unclaimed" on "files" ("createdAt", "key") where "claimedAt" is null`,
  `create index "files_removed" on "files" ("createdAt", "key") where "removedAt" is not null`,

  `create table "storageUsage" (
    "workspaceId" text primary key,
    "bytes" integer not null
  )`,
  `insert into "storageUsage" ("workspaceId", "bytes")
    select "workspaceId", sum("countedBytes") from "files" group by "workspaceId"`,
  `insert into "storageUsage" ("workspaceId", "bytes") select '', coalesce(sum("countedBytes"), 0) from "files"`,

  `create index "users_unverified" on "users" ("id") where "emailVerified" is null`,

  `create table "probes" (
    "name" text primary key,
    "at" text not null
  )`,
];
