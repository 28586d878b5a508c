/**
 * The name and password of a sign-up are stored with the link that it mailed, so no other sign-up changes them. Links of
 * earlier versions have neither.
 */
export const signUps: readonly string[] = [
  `alter table "accountTokens" add column "name" text`,
  `alter table "accountTokens" add column "passwordHash" text`,
  `alter table "accountTokens" add column "passwordAttempts" integer not null default 0`,
];
