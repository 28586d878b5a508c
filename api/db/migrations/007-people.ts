/**
 * Invites, teams, and the operator's organization. That is the organization of the first start; in an existing database
 * the oldest one.
 */
export const people: readonly string[] = [
  `alter table "organizations" add column "isOperators" integer not null default 0`,
  `update "organizations" set "isOperators" = 1
    where "id" in (select "id" from "organizations" order by "createdAt", "id" limit 1)`,

  `create table "invites" (
    "id" text primary key,
    "createdAt" text not null,
    "organizationId" text not null references "organizations" ("id") on delete cascade,
    "email" text not null,
    "role" text not null,
    "teamIds" text not null,
    "hashedToken" text not null unique,
    "invitedBy" text not null references "users" ("id") on delete cascade,
    "expiresAt" text not null,
    "revokedAt" text,
    unique ("organizationId", "email")
  )`,
  `create index "invites_invitedBy" on "invites" ("invitedBy")`,

  `create table "teams" (
    "id" text primary key,
    "createdAt" text not null,
    "updatedAt" text not null,
    "organizationId" text not null references "organizations" ("id") on delete cascade,
    "name" text not null,
    unique ("organizationId", "name")
  )`,

  `create table "teamMembers" (
    "teamId" text not null references "teams" ("id") on delete cascade,
    "userId" text not null references "users" ("id") on delete cascade,
    "role" text not null,
    "createdAt" text not null,
    primary key ("teamId", "userId")
  )`,
  `create index "teamMembers_userId" on "teamMembers" ("userId")`,

  `create table "teamWorkspaces" (
    "teamId" text not null references "teams" ("id") on delete cascade,
    "workspaceId" text not null references "workspaces" ("id") on delete cascade,
    "permission" text not null,
    "createdAt" text not null,
    "updatedAt" text not null,
    primary key ("teamId", "workspaceId")
  )`,
  `create index "teamWorkspaces_workspaceId" on "teamWorkspaces" ("workspaceId")`,

  `alter table "deliveryAttempts" add column "isPrivate" integer not null default 0`,
];
