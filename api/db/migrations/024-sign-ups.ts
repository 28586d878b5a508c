/**
 * Name and password of a sign-up are stored with its link, so that another sign-up cannot change them. Earlier links
 * have neither.
 */
export const signUps: readonly string[] = [
  `alter table "accountTokens" add column "name" text`,
  `alter table "accountTokens" add column "passwordHash" text`,
  `alter table "accountTokens" add column "passwordAttempts" integer not null default 0`,
];
