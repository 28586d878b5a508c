/** The end of every login: begins the session, and writes the audit entries. Also ends sessions. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { deleteSessionCookies, sessionCookie, sessionCookies } from '#api/auth/cookies.ts';
import { endSession, findSession, startSession } from '#api/auth/session.ts';
import type { Context } from '#api/context.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { countedAddress } from '#api/http/client-address.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { noteAccountEvent } from './account-event.ts';
import { type LoginResult, type Refusal, texts } from './login.ts';
import { findUser, isAsProven, noteLogin, type User } from './store.ts';

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
}

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
  const authMethod = provider === 'credentials' ? 'password' : 'email_verification';
  const changes = { provider, authMethod };
  await noteAccountEvent(context, request, { action: 'authenticationSucceeded', userId, changes });
  return admission;
}

/** Admits a login whose password, or whose link, was right. */
function admit(context: Context, user: User, { provider }: Login): Promise<Admission> {
  const { id: userId } = user;
  return context.db.transaction().execute(async (trx) => {
    if (!(await isAsProven(trx, user))) return { ...outdated[provider], userId };
    return { kind: 'session', token: await beginSession(context, trx, userId), user };
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
}

async function beginSession(
  { clock, random, config }: Context,
  trx: Database,
  userId: string,
): Promise<string> {
  await noteLogin(trx, userId, toTimestamp(clock()));
  return startSession(trx, userId, { clock, random, maxAgeSeconds: config.sessionMaxAgeSeconds });
}
