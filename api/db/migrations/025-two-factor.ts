/** Second factors of accounts: the encrypted secret of an authenticator app, and keyed hashes of backup codes. */
export const twoFactor: readonly string[] = [
  `create table "twoFactors" (
    "userId" text primary key references "users" ("id") on delete cascade,
    "sealedSecret" text not null,
    "lastStep" integer not null,
    "createdAt" text not null
  )`,
  `create table "backupCodes" (
    "userId" text not null references "users" ("id") on delete cascade,
    "digest" text not null,
    primary key ("userId", "digest")
  )`,
];
