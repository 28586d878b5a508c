/**
 * The end of every login: asks for the second factor if the account has one, begins the session, and writes the audit
 * entries. Also ends sessions.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { deleteSessionCookies, sessionCookie, sessionCookies } from '#api/auth/cookies.ts';
import { type SecondFactor, useSecondFactor } from '#api/auth/second-factor.ts';
import { endSession, findSession, startSession } from '#api/auth/session.ts';
import type { Context } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { tooManyRequests } from '#api/errors.ts';
import { countedAddress } from '#api/http/client-address.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { noteAccountEvent } from './account-event.ts';
import { type LoginResult, type Refusal, texts } from './login.ts';
import {
  deleteOldTokens,
  deleteToken,
  findToken,
  findTokenToUse,
  findUser,
  insertToken,
  isAsProven,
  noteLogin,
  takeAttempt,
  type User,
} from './store.ts';

type Provider = 'credentials' | 'token';

type Admission = { readonly kind: 'session'; readonly token: string; readonly user: User } | Refusal;

/** Refusals of a login whose credentials were right when they were checked, but are not right any more. */
const outdated = {
  credentials: { kind: 'refused', text: texts.invalid, reason: 'invalid_password' },
  token: { kind: 'refused', text: texts.invalidToken, reason: 'invalid_token' },
} as const;

export interface Login {
  readonly provider: Provider;
  /** The address as it was typed; null if the login has none. */
  readonly email: string | null;
  /** The code of the second factor; null if the login gave none. */
  readonly factor: SecondFactor | null;
}

/** @throws ApiError too_many_requests for too many codes */
export async function finishLogin(
  context: Context,
  request: FastifyRequest,
  result: LoginResult,
  login: Login,
): Promise<Admission> {
  const admission = result.kind === 'refused' ? result : await admit(context, result.user, login);
  if (admission.kind === 'refused') {
    await noteRefusal(context, request, admission, login);
    return admission;
  }
  const { provider } = login;
  const { user } = admission;
  const { id: userId } = user;
  if (provider === 'token') {
    await noteAccountEvent(context, request, { action: 'emailVerified', userId, changes: { provider } });
  }
  if (user.twoFactorEnabled === 1) await noteFactor(context, request, userId, login.factor);
  const authMethod = provider === 'credentials' ? 'password' : 'email_verification';
  const changes = { provider, authMethod };
  await noteAccountEvent(context, request, { action: 'authenticationSucceeded', userId, changes });
  return admission;
}

/** Admits a login whose password was right, if its second factor is right too. */
async function admit(context: Context, user: User, { provider, factor }: Login): Promise<Admission> {
  const { db, clock, signer } = context;
  const { id: userId } = user;
  const needsFactor = user.twoFactorEnabled === 1;
  if (needsFactor && factor === null) {
    return { kind: 'refused', text: texts.secondFactorRequired, reason: null, userId };
  }
  if (needsFactor) await takeGuess(context, userId);
  return db.transaction().execute(async (trx) => {
    if (!(await isAsProven(trx, user))) return { ...outdated[provider], userId };
    if (needsFactor && factor !== null) {
      const use = await useSecondFactor(trx, signer, userId, factor, clock());
      if (use !== 'right') return wrongFactor(factor, use, userId);
    }
    return { kind: 'session', token: await beginSession(context, trx, userId), user };
  });
}

/** Maximum number of waiting logins of an account. A further one ends the oldest. */
const HELD_LOGINS_MAX = 10;

/**
 * Keeps a login for ten minutes that lacks its second factor.
 *
 * @param user whose password was right
 * @returns the token for the cookie
 */
export function holdLogin({ db, clock, random }: Context, user: User): Promise<string> {
  const { id: userId, email, name, passwordHash } = user;
  const choice = passwordHash === null ? null : { name, passwordHash };
  return db.transaction().execute(async (trx) => {
    await deleteOldTokens(trx, userId, 'twoFactor', HELD_LOGINS_MAX - 1);
    return insertToken(trx, { userId, purpose: 'twoFactor', email, choice }, clock(), random);
  });
}

/**
 * Finishes a login of `holdLogin`.
 *
 * @returns `ended` if there is no such login, or its account has changed; `exhausted` after too many codes
 * @throws ApiError too_many_requests
 */
export async function finishHeldLogin(
  context: Context,
  request: FastifyRequest,
  token: string,
  factor: SecondFactor,
): Promise<Admission | { readonly kind: 'ended' | 'exhausted' }> {
  const { db, clock, signer } = context;
  const held = await findToken(db, 'twoFactor', token, clock());
  if (held === null) return { kind: 'ended' };
  const { id: userId } = held.user;
  await takeGuess(context, userId);
  if (!(await takeAttempt(db, token))) {
    // Another request may have finished the login meanwhile.
    const isOver = (await findToken(db, 'twoFactor', token, clock())) === null;
    return { kind: isOver ? 'ended' : 'exhausted' };
  }
  const admission = await db
    .transaction()
    .execute(async (trx): Promise<Admission | { readonly kind: 'ended' }> => {
      const found = await findTokenToUse(trx, 'twoFactor', token, clock());
      if (found === null) return { kind: 'ended' };
      const { user, email, choice } = found;
      const proven = {
        ...user,
        email,
        passwordHash: choice?.passwordHash ?? null,
        twoFactorEnabled: 1,
      } as const;
      if (!(await isAsProven(trx, proven))) return { kind: 'ended' };
      const use = await useSecondFactor(trx, signer, userId, factor, clock());
      if (use !== 'right') return wrongFactor(factor, use, userId);
      await deleteToken(trx, token);
      return { kind: 'session', token: await beginSession(context, trx, userId), user };
    });
  if (admission.kind === 'refused') {
    await noteRefusal(context, request, admission, { provider: 'credentials', email: held.email });
  }
  if (admission.kind === 'session') {
    await noteFactor(context, request, userId, factor);
    const changes = { provider: 'credentials', authMethod: 'password' };
    await noteAccountEvent(context, request, { action: 'authenticationSucceeded', userId, changes });
  }
  return admission;
}

/**
 * Counts a code for the account before it is checked, so that more client addresses give no more guesses.
 *
 * @throws ApiError too_many_requests
 */
export async function takeGuess({ limits }: Pick<Context, 'limits'>, userId: string): Promise<void> {
  const outcome = await limits.consume('auth.twoFactor', `user:${userId}`);
  if (!outcome.isAllowed) throw tooManyRequests(outcome.retryAfterSeconds);
}

function wrongFactor({ kind }: SecondFactor, use: 'wrong' | 'none', userId: string): Refusal {
  if (kind === 'totp') {
    return { kind: 'refused', text: texts.wrongTotpCode, reason: 'invalid_totp_code', userId };
  }
  const text = use === 'none' ? texts.noBackupCodes : texts.wrongBackupCode;
  return { kind: 'refused', text, reason: 'invalid_backup_code', userId };
}

function noteFactor(
  context: Context,
  request: FastifyRequest,
  userId: string,
  factor: SecondFactor | null,
): Promise<void> {
  const changes = { provider: 'credentials', method: factor?.kind };
  return noteAccountEvent(context, request, { action: 'twoFactorVerified', userId, changes });
}

/** Returns the session of a request, with its token and its user. null if there is none, or it has ended. */
export async function loggedIn(
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  { cookies }: FastifyRequest,
): Promise<LoggedIn | null> {
  const token = sessionCookie(cookies);
  const session = token === null ? null : await findSession(db, token, clock);
  const user = session === null ? null : await findUser(db, session.userId);
  return token === null || session === null || user === null ? null : { ...session, token, user };
}

interface LoggedIn extends NonNullable<Awaited<ReturnType<typeof findSession>>> {
  readonly token: string;
  readonly user: User;
}

export async function signOut(context: Context, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { db, clock, config } = context;
  for (const token of sessionCookies(request.cookies)) {
    const session = await findSession(db, token, clock);
    await endSession(db, token);
    if (session === null) continue;
    const { userId } = session;
    await noteAccountEvent(context, request, { action: 'userSignedOut', userId, changes: {} });
  }
  deleteSessionCookies(reply, config.publicUrl);
}

async function noteRefusal(
  context: Context,
  request: FastifyRequest,
  { text, reason, userId }: Refusal,
  { provider, email }: Pick<Login, 'provider' | 'email'>,
): Promise<void> {
  if (reason !== null) {
    const ipAddress = countedAddress(request, context.config.trustedProxies);
    await context.audit.authFailed({ provider, reason, userId, email, ipAddress, requestId: request.id });
  }
  if (text === texts.unverified && userId !== null) {
    const changes = { provider, pending: 'email_verification' };
    await noteAccountEvent(context, request, { action: 'passwordVerified', userId, changes });
  }
  if (text === texts.secondFactorRequired && userId !== null) {
    await noteAccountEvent(context, request, { action: 'twoFactorRequired', userId, changes: { provider } });
  }
}

async function beginSession(
  { clock, random, config }: Context,
  trx: Database,
  userId: string,
): Promise<string> {
  await noteLogin(trx, userId, toTimestamp(clock()));
  return startSession(trx, userId, { clock, random, maxAgeSeconds: config.sessionMaxAgeSeconds });
}
