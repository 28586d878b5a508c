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
    "storedAt" text
  )`,
  `create index "files_workspaceId" on "files" ("workspaceId", "createdAt")`,
  `create index "files_surveyId" on "files" ("surveyId", "createdAt") where "surveyId" is not null`,
  `create index "files_responseId" on "files" ("responseId", "createdAt") where "responseId" is not null`,
  `create index "files_unsettled" on "files" ("createdAt", "key") where "storedAt" is null`,
];
