/** An authenticator app: the codes for an account that has a second factor. */
import { totpSecret } from '#api/auth/second-factor.ts';
import { stepAt, totpCode } from '#api/auth/totp.ts';
import type { TestApi } from './api-app.ts';

/** The code that the app shows now. @param off steps of 30 seconds before or after */
export async function codeOf({ context }: TestApi, email: string, off = 0): Promise<string> {
  const { db, signer, clock } = context;
  const { id } = await db
    .selectFrom('users')
    .select('id')
    .where('email', '=', email)
    .executeTakeFirstOrThrow();
  const secret = await totpSecret(db, signer, id);
  if (secret === null) throw new Error(`${email} has no second factor`);
  return totpCode(secret, stepAt(clock()) + off);
}

/** A code that is wrong now. */
export async function wrongCodeOf(api: TestApi, email: string): Promise<string> {
  const right = await Promise.all([-1, 0, 1].map((off) => codeOf(api, email, off)));
  return ['000000', '000001', '000002', '000003'].find((code) => !right.includes(code)) ?? '';
}
