/** Logins take a password alone. The tables of the second factor are dropped by `drops`, see index.ts. */
export const noSecondFactor: readonly string[] = [
  `delete from "accountTokens" where "purpose" = 'twoFactor'`,
  `alter table "users" drop column "twoFactorEnabled"`,
];
