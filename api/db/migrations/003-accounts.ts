/**
 * Sessions, links in mails, the outbox of mails, and the audit log. Secrets, such as the token of a session or a link,
 * are stored only as hashes.
 */
export const accounts: readonly string[] = [
  `create table "sessions" (
    "hashedToken" text primary key,
    "userId" text not null references "users" ("id") on delete cascade,
    "createdAt" text not null,
    "expiresAt" text not null
  )`,
  `create index "sessions_userId" on "sessions" ("userId")`,
  `create index "sessions_expiresAt" on "sessions" ("expiresAt")`,

  `create table "accountTokens" (
    "hashedToken" text primary key,
    "userId" text not null references "users" ("id") on delete cascade,
    "purpose" text not null,
    "email" text not null,
    "createdAt" text not null,
    "expiresAt" text not null
  )`,
  `create index "accountTokens_userId" on "accountTokens" ("userId", "purpose", "createdAt")`,
  `create index "accountTokens_expiresAt" on "accountTokens" ("expiresAt")`,

  `create table "mailOutbox" (
    "id" text primary key,
    "createdAt" text not null,
    "kind" text not null,
    "recipient" text not null,
    "replyTo" text,
    "subject" text not null,
    "body" text not null,
    "status" text not null,
    "attempts" integer not null,
    "nextAttemptAt" text not null,
    "settledAt" text,
    "lastError" text
  )`,
  `create index "mailOutbox_due" on "mailOutbox" ("status", "nextAttemptAt")`,
  `create index "mailOutbox_createdAt" on "mailOutbox" ("createdAt")`,
  `create index "mailOutbox_recipient" on "mailOutbox" ("recipient", "kind", "createdAt")`,

  `create table "auditEvents" (
    "id" text primary key,
    "timestamp" text not null,
    "action" text not null,
    "actorId" text not null,
    "actorType" text not null,
    "targetId" text not null,
    "targetType" text not null,
    "status" text not null,
    "organizationId" text,
    "ipAddress" text not null,
    "eventId" text not null,
    "changes" text not null
  )`,
  `create index "auditEvents_timestamp" on "auditEvents" ("timestamp")`,
];
