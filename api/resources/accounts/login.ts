/**
 * Decides who may log in, begins the session, and writes the audit entries. A failed login reveals nothing about
 * accounts: an unknown address, a wrong password and an account without a password get the same reply after the same
 * work, one argon2id each.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FailureReason } from '#api/audit/audit.ts';
import { deleteSessionCookies, sessionCookie, sessionCookies } from '#api/auth/cookies.ts';
import { isTooLong, normalizeEmail, passwordIn } from '#api/auth/password.ts';
import { endSession, findSession, startSession } from '#api/auth/session.ts';
import type { Context } from '#api/context.ts';
import type { Timestamp } from '#api/db/schema.ts';
import { ensureOrganization } from '#api/resources/organizations/create.ts';
import { plainName } from '#api/resources/organizations/name.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import {
  type AccountLink,
  deleteOtherTokens,
  findToken,
  findTokenToUse,
  findUser,
  findUserByEmail,
  isAsProven,
  noteLogin,
  type User,
  updateUser,
} from './store.ts';

interface Refusal {
  readonly kind: 'refused';
  readonly text: string;
  /** Reason for the audit log; null if it is no failed authentication. */
  readonly reason: FailureReason | null;
  readonly userId: string | null;
}

type Checked = { readonly kind: 'proven'; readonly user: User } | Refusal;
type Admission = { readonly kind: 'session'; readonly token: string; readonly user: User } | Refusal;

export const texts = {
  invalid: 'Invalid credentials',
  unverified: 'Email Verification is Pending',
  invalidToken: 'Either a user does not match the provided token or the token is invalid',
  alreadyVerified: 'Email already verified',
} as const;

interface Login {
  readonly provider: 'credentials' | 'token';
  /** The address as it was typed; null if the login has none. */
  readonly email: string | null;
}

/** Returns a field as it was typed; '' if it is missing. */
type FieldOf = (name: 'email' | 'name' | 'password' | 'token') => string;

export async function checkPassword({ db, passwords }: Context, fieldOf: FieldOf): Promise<Checked> {
  const email = fieldOf('email');
  const password = fieldOf('password');
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
  if (user.emailVerified === null) return refused(texts.unverified, null, user.id);
  return { kind: 'proven', user };
}

/**
 * Verifies the address that the link was sent to, once. The account gets the password that comes with the link, because
 * the one of the sign-up may be that of a stranger. All other links of the account end.
 *
 * @throws ApiError invalid_fields for a password or a name that is not allowed
 */
export async function redeemVerification(context: Context, fieldOf: FieldOf): Promise<Checked> {
  const { db, clock, random, config, passwords } = context;
  const token = fieldOf('token');
  const password = fieldOf('password');
  const name = fieldOf('name');
  if (token === '') return refused(texts.invalidToken, 'token_not_provided', null);
  const link = usable(await findToken(db, 'verifyEmail', token, clock()));
  if ('kind' in link) return link;
  const chosen = name === '' ? {} : { name: plainName(name) };
  const passwordHash = await passwords.hash(passwordIn(password));

  return db.transaction().execute(async (trx) => {
    // Check again, because another link of the account may have been used meanwhile.
    const found = usable(await findTokenToUse(trx, 'verifyEmail', token, clock()));
    if ('kind' in found) return found;
    const now = toTimestamp(clock());
    const change = { ...chosen, passwordHash, emailVerified: now };
    const user = { ...found.user, ...change };
    await updateUser(trx, user.id, change, now);
    await deleteOtherTokens(trx, user.id, token);
    await ensureOrganization(trx, user, { now, random, isSignupEnabled: config.isSignupEnabled });
    return { kind: 'proven', user };
  });
}

function usable(link: AccountLink | null): AccountLink | Refusal {
  if (link === null) return refused(texts.invalidToken, 'invalid_token', null);
  const { id, emailVerified } = link.user;
  // The link stays until it ends, so that a second click gets the right answer.
  return emailVerified === null ? link : refused(texts.alreadyVerified, 'email_already_verified', id);
}

/** Ends a login: begins the session, unless it is refused, and writes the audit entries. */
export async function finishLogin(
  context: Context,
  request: FastifyRequest,
  checked: Checked,
  { provider, email }: Login,
): Promise<Admission> {
  const admission = checked.kind === 'refused' ? checked : await admit(context, checked.user, provider);
  if (admission.kind === 'refused') {
    const { reason, userId } = admission;
    if (reason !== null) await context.audit.authFailed(request, { provider, reason, userId, email });
    return admission;
  }
  const actor = { type: 'user', id: admission.user.id } as const;
  await context.audit.record(request, { action: 'authenticationSucceeded', actor, changes: { provider } });
  return admission;
}

/** Begins a session, if what was proven is still true. */
function admit(
  { db, clock, random, config }: Context,
  user: User,
  provider: Login['provider'],
): Promise<Admission> {
  return db.transaction().execute(async (trx) => {
    if (!(await isAsProven(trx, user))) {
      return provider === 'token'
        ? refused(texts.invalidToken, 'invalid_token', user.id)
        : refused(texts.invalid, 'invalid_password', user.id);
    }
    await noteLogin(trx, user.id, toTimestamp(clock()));
    const options = { clock, random, maxAgeSeconds: config.sessionMaxAgeSeconds };
    return { kind: 'session', token: await startSession(trx, user.id, options), user };
  });
}

/** Returns the user of a request's session, and the end of the session. null if there is none, or it has ended. */
export async function loggedIn(
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  { cookies }: FastifyRequest,
): Promise<{ readonly user: User; readonly expiresAt: Timestamp } | null> {
  const token = sessionCookie(cookies);
  const session = token === null ? null : await findSession(db, token, clock);
  const user = session === null ? null : await findUser(db, session.userId);
  return session === null || user === null ? null : { user, expiresAt: session.expiresAt };
}

export async function signOut(context: Context, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { db, config } = context;
  for (const token of sessionCookies(request.cookies)) await endSession(db, token);
  deleteSessionCookies(reply, config.publicUrl);
}

function refused(text: string, reason: FailureReason | null, userId: string | null): Refusal {
  return { kind: 'refused', text, reason, userId };
}
