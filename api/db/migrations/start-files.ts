/** Uploaded files, one row for each granted key. No foreign keys, because a row stays until the object is deleted. */
export const files: readonly string[] = [
  `create table "files" (
    "key" text primary key,
    "workspaceId" text not null,
    "access" text not null,
    "surveyId" text,
    "responseId" text,
    "size" integer,
    "createdAt" text not null,
    "storedAt" text,
    "countedBytes" integer not null default 0,
    "claimedAt" text,
    "removedAt" text
  )`,
  `create index "files_workspaceId" on "files" ("workspaceId", "createdAt")`,
  `create index "files_surveyId" on "files" ("surveyId", "createdAt") where "surveyId" is not null`,
  `create index "files_responseId" on "files" ("responseId", "createdAt") where "responseId" is not null`,
  `create index "files_unsettled" on "files" ("createdAt", "key") where "storedAt" is null`,
  `create index "files_unclaimed" on "files" ("createdAt", "key") where "claimedAt" is null`,
  `create index "files_removed" on "files" ("createdAt", "key") where "removedAt" is not null`,

  // The row without a workspace is the sum of all.
  `create table "storageUsage" (
    "workspaceId" text primary key,
    "bytes" integer not null
  )`,
  `insert into "storageUsage" ("workspaceId", "bytes") values ('', 0)`,
];
