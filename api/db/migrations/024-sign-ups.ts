/**
 * What somebody chose who signed up waits beside the link that they were mailed, so that no other sign-up changes it. Links
 * of earlier versions have none of it.
 */
export const signUps: readonly string[] = [
  `alter table "accountTokens" add column "name" text`,
  `alter table "accountTokens" add column "passwordHash" text`,
  `alter table "accountTokens" add column "passwordAttempts" integer not null default 0`,
];
