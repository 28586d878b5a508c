/** The end of every login: begins the session, and writes the audit entries. Also ends sessions. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { deleteSessionCookies, sessionCookies } from '#api/auth/cookies.ts';
import { endSession, findSession, startSession } from '#api/auth/session.ts';
import type { Context } from '#api/context.ts';
import { countedAddress } from '#api/http/client-address.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { noteAccountEvent } from './account-event.ts';
import { type LoginResult, type Refusal, texts } from './login.ts';
import { isAsProven, noteLogin, type User } from './store.ts';

export type Provider = 'credentials' | 'token';

type Admission = { readonly kind: 'session'; readonly token: string; readonly user: User } | Refusal;

/** The credentials were right when they were checked. */
const outdated = {
  credentials: { kind: 'refused', text: texts.invalid, reason: 'invalid_password' },
  token: { kind: 'refused', text: texts.invalidToken, reason: 'invalid_token' },
} as const;

/** @param email as it was typed; null: the login has none */
export async function finishLogin(
  context: Context,
  request: FastifyRequest,
  result: LoginResult,
  { provider, email }: { readonly provider: Provider; readonly email: string | null },
): Promise<Admission> {
  const refuse = async (refusal: Refusal): Promise<Refusal> => {
    await noteRefusal(context, request, refusal, { provider, email });
    return refusal;
  };
  if (result.kind === 'refused') return refuse(result);
  const { user } = result;
  const { id: userId } = user;
  const token = await beginSession(context, user);
  if (token === null) return refuse({ ...outdated[provider], userId });
  if (provider === 'token') {
    await noteAccountEvent(context, request, { action: 'emailVerified', userId, changes: { provider } });
  }
  const authMethod = provider === 'credentials' ? 'password' : 'email_verification';
  const changes = { provider, authMethod };
  await noteAccountEvent(context, request, { action: 'authenticationSucceeded', userId, changes });
  return { kind: 'session', token, user };
}

/** Ends the session of the request, if there is one, and deletes its cookie. */
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
  { provider, email }: { readonly provider: Provider; readonly email: string | null },
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

/** @returns the token of the session; null: the account has changed since the check */
function beginSession({ db, clock, random, config }: Context, user: User): Promise<string | null> {
  return db.transaction().execute(async (trx) => {
    if (!(await isAsProven(trx, user))) return null;
    await noteLogin(trx, user.id, toTimestamp(clock()));
    return startSession(trx, user.id, { clock, random, maxAgeSeconds: config.sessionMaxAgeSeconds });
  });
}
