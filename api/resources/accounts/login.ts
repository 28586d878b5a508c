/**
 * Who may log in. The one who fails learns nothing about accounts: unknown address, wrong password and account without
 * a password get the same answer for the same work, one argon2id each.
 */
import type { FailureReason } from '#api/audit/audit.ts';
import { isTooLong, normalizeEmail } from '#api/auth/password.ts';
import type { Context } from '#api/context.ts';
import { ensureOrganization } from '#api/resources/organizations/create.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { findTokenToUse, findUserByEmail, type User, updateUser } from './store.ts';

export type LoginResult =
  | { readonly kind: 'admitted'; readonly user: User }
  | {
      readonly kind: 'refused';
      /** For the caller. */
      readonly text: string;
      /** For the audit log; null: not a failed authentication. */
      readonly reason: FailureReason | null;
      readonly userId: string | null;
    };

export const texts = {
  invalid: 'Invalid credentials',
  inactive: 'Your account is currently inactive. Please contact the organization admin.',
  unverified: 'Email Verification is Pending',
  invalidToken: 'Either a user does not match the provided token or the token is invalid',
  alreadyVerified: 'Email already verified',
} as const;

/** @param email and password as they were typed; '' when missing */
export async function checkPassword(
  { db, passwords }: Pick<Context, 'db' | 'passwords'>,
  email: string,
  password: string,
): Promise<LoginResult> {
  if (email === '' || password === '') return refused(texts.invalid, 'no_credentials_provided', null);
  if (isTooLong(password)) return refused(texts.invalid, 'password_too_long', null);

  const address = normalizeEmail(email);
  const user = address === null ? null : await findUserByEmail(db, address);
  const isRight = await passwords.verify(password, user?.passwordHash ?? null);
  if (user === null) return refused(texts.invalid, 'user_not_found', null);
  if (!isRight) {
    const reason = user.passwordHash === null ? 'no_password_set' : 'invalid_password';
    return refused(texts.invalid, reason, user.id);
  }
  // From here on the caller has shown to be the owner, and may know how the account stands.
  if (user.isActive !== 1) return refused(texts.inactive, 'account_inactive', user.id);
  if (user.emailVerified === null) return refused(texts.unverified, null, user.id);
  return { kind: 'admitted', user };
}

/** The link of a verification mail: it verifies the address, and logs in that one time. */
export async function redeemVerification(
  { db, clock, random, config }: Pick<Context, 'db' | 'clock' | 'random' | 'config'>,
  token: string,
): Promise<LoginResult> {
  if (token === '') return refused(texts.invalidToken, 'token_not_provided', null);
  return db.transaction().execute(async (trx) => {
    const found = await findTokenToUse(trx, 'verifyEmail', token, clock());
    if (found === null) return refused(texts.invalidToken, 'invalid_token', null);
    const { user } = found;
    if (user.isActive !== 1) return refused(texts.inactive, 'account_inactive', user.id);
    // The link stays until it ends, so that a second click is answered by what is the case.
    if (user.emailVerified !== null) return refused(texts.alreadyVerified, 'email_already_verified', user.id);
    const now = toTimestamp(clock());
    await updateUser(trx, user.id, { emailVerified: now }, now);
    await ensureOrganization(trx, user, { now, random, isSignupEnabled: config.isSignupEnabled });
    return { kind: 'admitted', user };
  });
}

function refused(text: string, reason: FailureReason | null, userId: string | null): LoginResult {
  return { kind: 'refused', text, reason, userId };
}
