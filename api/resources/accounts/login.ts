/**
 * Decides who may log in. A failed login reveals nothing about accounts: an unknown address, a wrong password and an
 * account without a password get the same reply after the same work, one argon2id each.
 */
import type { FailureReason } from '#api/audit/audit.ts';
import { isTooLong, normalizeEmail, passwordProblem } from '#api/auth/password.ts';
import type { Context } from '#api/context.ts';
import { invalidFields } from '#api/errors.ts';
import { ensureOrganization } from '#api/resources/organizations/create.ts';
import { plainName } from '#api/resources/organizations/name.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import {
  type AccountLink,
  type Choice,
  deleteOtherTokens,
  findToken,
  findTokenToUse,
  findUserByEmail,
  takeAttempt,
  type User,
  updateUser,
} from './store.ts';

export interface Refusal {
  readonly kind: 'refused';
  readonly text: string;
  /** Reason for the audit log; null if it is no failed authentication. */
  readonly reason: FailureReason | null;
  readonly userId: string | null;
}

export type LoginResult = { readonly kind: 'admitted'; readonly user: User } | Refusal;

export const texts = {
  invalid: 'Invalid credentials',
  inactive: 'Your account is currently inactive. Please contact the organization admin.',
  unverified: 'Email Verification is Pending',
  /** Text for people whose session ended between two pages. */
  sessionRequired: 'SessionRequired',
  invalidToken: 'Either a user does not match the provided token or the token is invalid',
  alreadyVerified: 'Email already verified',
  passwordNeeded:
    'This link needs a password: send that of the sign-up as "password", or choose another one as "newPassword"',
  wrongPassword:
    'This is not the password of the sign-up: send that as "password", or choose another one as "newPassword"',
  tooManyPasswords: 'Too many wrong passwords for this link: choose another one as "newPassword"',
} as const;

/** @param email and password as typed; '' if missing */
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
  // The caller has proven to own the account, so the reply may reveal its state.
  if (user.isActive !== 1) return refused(texts.inactive, 'account_inactive', user.id);
  if (user.emailVerified === null) return refused(texts.unverified, null, user.id);
  return { kind: 'admitted', user };
}

/** The link in a verification mail, and the values that came with it; '' stands for a missing one. */
interface Verification {
  readonly token: string;
  /** The password of the sign-up that the link belongs to. */
  readonly password: string;
  /** Replaces that password. The link proves who owns the mailbox, so nothing else is required. */
  readonly newPassword: string;
  /** Name for the account, given together with the new password. */
  readonly name: string;
}

/**
 * Verifies the address that the link was sent to, and logs the person in, once. The account gets the name and the
 * password of the link's own sign-up. All other links of the account end.
 *
 * @throws ApiError invalid_fields for a new password or a name that is not allowed
 */
export async function redeemVerification(
  context: Pick<Context, 'db' | 'clock' | 'random' | 'config' | 'passwords'>,
  verification: Verification,
): Promise<LoginResult> {
  const { db, clock, random, config } = context;
  const { token } = verification;
  if (token === '') return refused(texts.invalidToken, 'token_not_provided', null);
  const link = await findToken(db, 'verifyEmail', token, clock());
  const refusal = refusalOf(link);
  if (refusal !== null || link === null) return refusal ?? invalidToken();
  const choice = await choiceFor(context, link, verification);
  if (choice.kind === 'refused') return choice;

  return db.transaction().execute(async (trx) => {
    // Check again, because another link of the account may have been used meanwhile.
    const found = await findTokenToUse(trx, 'verifyEmail', token, clock());
    const refusal = refusalOf(found);
    if (refusal !== null || found === null) return refusal ?? invalidToken();
    const now = toTimestamp(clock());
    const change = { ...choice.account, emailVerified: now };
    const user = { ...found.user, ...change };
    await updateUser(trx, user.id, change, now);
    await deleteOtherTokens(trx, user.id, token);
    await ensureOrganization(trx, user, { now, random, isSignupEnabled: config.isSignupEnabled });
    return { kind: 'admitted', user };
  });
}

/** Returns why a link is refused; null if it is valid. */
function refusalOf(link: AccountLink | null): Refusal | null {
  if (link === null) return invalidToken();
  const { id, isActive, emailVerified } = link.user;
  if (isActive !== 1) return refused(texts.inactive, 'account_inactive', id);
  // The link stays until it ends, so that a second click gets the right answer.
  return emailVerified === null ? null : refused(texts.alreadyVerified, 'email_already_verified', id);
}

/** Returns the name and password that the account gets. */
async function choiceFor(
  { db, passwords }: Pick<Context, 'db' | 'passwords'>,
  { user, choice }: AccountLink,
  { token, password, newPassword, name }: Verification,
): Promise<Refusal | { readonly kind: 'chosen'; readonly account: Choice }> {
  if (newPassword !== '') {
    const problem = passwordProblem(newPassword);
    if (problem !== null) throw invalidFields({ newPassword: problem });
    const chosenName = name === '' ? (choice?.name ?? user.name) : plainName(name);
    const account = { name: chosenName, passwordHash: await passwords.hash(newPassword) };
    return { kind: 'chosen', account };
  }
  // A link of the operator carries no password, and the account may have that of a stranger who signed up with its address.
  if (choice === null || password === '')
    return refused(texts.passwordNeeded, 'no_credentials_provided', user.id);
  if (isTooLong(password)) return refused(texts.wrongPassword, 'password_too_long', user.id);
  if (!(await takeAttempt(db, token))) {
    return refused(texts.tooManyPasswords, 'invalid_password', user.id);
  }
  if (await passwords.verify(password, choice.passwordHash)) return { kind: 'chosen', account: choice };
  return refused(texts.wrongPassword, 'invalid_password', user.id);
}

function invalidToken(): Refusal {
  return refused(texts.invalidToken, 'invalid_token', null);
}

function refused(text: string, reason: FailureReason | null, userId: string | null): Refusal {
  return { kind: 'refused', text, reason, userId };
}
