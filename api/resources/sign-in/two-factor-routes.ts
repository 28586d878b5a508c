/**
 * The second factor of an account: codes of an authenticator app, and backup codes, in the form of Better Auth.
 *
 * Callers: sessions, with the password of the account, to set it up; anybody whose login waits for a code, to finish
 * it. Pages: those of our own origin. At most five codes and passwords a minute for each account.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { deleteHeldLogin, heldLogin, setSessionCookie } from '#api/auth/cookies.ts';
import { isTooLong } from '#api/auth/password.ts';
import { forPeople, sessionOf } from '#api/auth/plugin.ts';
import {
  enroll,
  removeSecondFactor,
  renewBackupCodes,
  type SecondFactor,
  totpSecret,
  useSecondFactor,
} from '#api/auth/second-factor.ts';
import { endSessionsOf, startSession } from '#api/auth/session.ts';
import { totpUri } from '#api/auth/totp.ts';
import type { Routes } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { noteAccountEvent } from '#api/resources/accounts/account-event.ts';
import { finishHeldLogin, loggedIn, takeGuess } from '#api/resources/accounts/admission.ts';
import {
  deleteTokens,
  findUser,
  isAsProven,
  type User as UserRow,
  updateUser,
} from '#api/resources/accounts/store.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { nameErrors, problem, refuseForeignOrigins } from './errors.ts';
import { shownUser, User } from './shapes.ts';

const ISSUER_LENGTH_MAX = 100;

const Text = Type.String();
const Codes = Type.Array(Text);
const WithPassword = Type.Object({ password: Text });
const trustDevice = Type.Optional(
  Type.Boolean({ description: 'Accepted and ignored: every login needs the second factor.' }),
);
const LoggedIn = Type.Object({ token: Text, user: User });

const setUp = { ...forPeople, limit: 'auth.twoFactor', refuses: ['bad_request'] } as const;
const verification = { refuses: ['bad_request', 'not_authenticated', 'too_many_requests'] } as const;

export const twoFactorRoutes: Routes = async (app, { context }) => {
  const { db, clock, passwords, signer, config } = context;
  const { publicUrl } = config;
  const onRequest = refuseForeignOrigins(publicUrl);
  nameErrors(app);

  app.post(
    '/api/auth/two-factor/enable',
    {
      schema: {
        body: Type.Object({
          password: Text,
          issuer: Type.Optional(
            Type.String({ maxLength: ISSUER_LENGTH_MAX, description: 'The name in the authenticator app.' }),
          ),
        }),
        response: {
          200: Type.Object(
            { totpURI: Text, backupCodes: Codes },
            { description: 'Logins need the second factor after the first right code, see `verify-totp`.' },
          ),
        },
      },
      config: setUp,
      onRequest,
    },
    async (request) => {
      const { password, issuer } = request.body;
      return withPassword(request, password, async (trx, user) => {
        if (user.twoFactorEnabled === 1) throw problem('TWO_FACTOR_ALREADY_ENABLED');
        const secret = await enroll(trx, context, user.id, toTimestamp(clock()));
        return {
          totpURI: uriOf(secret, user, issuer),
          backupCodes: await renewBackupCodes(trx, context, user.id),
        };
      });
    },
  );

  app.post(
    '/api/auth/two-factor/get-totp-uri',
    {
      schema: { body: WithPassword, response: { 200: Type.Object({ totpURI: Text }) } },
      config: setUp,
      onRequest,
    },
    async (request) =>
      withPassword(request, request.body.password, async (trx, user) => {
        const secret = await totpSecret(trx, signer, user.id);
        if (secret === null) throw problem('TOTP_NOT_ENABLED');
        return { totpURI: uriOf(secret, user) };
      }),
  );

  app.post(
    '/api/auth/two-factor/generate-backup-codes',
    {
      schema: {
        body: WithPassword,
        response: { 200: Type.Object({ status: Type.Boolean(), backupCodes: Codes }) },
      },
      config: setUp,
      onRequest,
    },
    async (request) => {
      const backupCodes = await withPassword(request, request.body.password, async (trx, user) => {
        if (user.twoFactorEnabled !== 1) throw problem('TWO_FACTOR_NOT_ENABLED');
        return renewBackupCodes(trx, context, user.id);
      });
      await noteChange(request, sessionOf(request).userId, 'backupCodes');
      return { status: true, backupCodes: backupCodes };
    },
  );

  app.post(
    '/api/auth/two-factor/disable',
    {
      schema: { body: WithPassword, response: { 200: Type.Object({ status: Type.Boolean() }) } },
      config: setUp,
      onRequest,
    },
    async (request) => {
      await withPassword(request, request.body.password, async (trx, { id }) => {
        await updateUser(trx, id, { twoFactorEnabled: 0 }, toTimestamp(clock()));
        await deleteTokens(trx, id, ['twoFactor']);
        await removeSecondFactor(trx, id);
      });
      await noteChange(request, sessionOf(request).userId, 'twoFactorEnabled');
      return { status: true };
    },
  );

  app.post(
    '/api/auth/two-factor/verify-totp',
    {
      schema: { body: Type.Object({ code: Text, trustDevice }), response: { 200: LoggedIn } },
      config: verification,
      onRequest,
    },
    async (request, reply) => {
      const factor = { kind: 'totp', code: request.body.code.trim() } as const;
      return (await finishLogin(request, reply, factor)) ?? confirm(request, reply, factor);
    },
  );

  app.post(
    '/api/auth/two-factor/verify-backup-code',
    {
      schema: {
        body: Type.Object({ code: Text, disableSession: Type.Optional(Type.Boolean()), trustDevice }),
        response: { 200: LoggedIn },
      },
      config: verification,
      onRequest,
    },
    async (request, reply) => {
      const { code, disableSession } = request.body;
      const factor = { kind: 'backupCode', code } as const;
      const finished = await finishLogin(request, reply, factor, disableSession === true);
      return finished ?? confirm(request, reply, factor);
    },
  );

  /** Finishes a login that waits for its second factor. @returns null when there is none */
  async function finishLogin(
    request: FastifyRequest,
    reply: FastifyReply,
    factor: SecondFactor,
    isCookieUnwanted = false,
  ) {
    const held = heldLogin(request.cookies);
    if (held === null) return null;
    const admission = await finishHeldLogin(context, request, held.token, factor);
    switch (admission.kind) {
      case 'ended':
        return null;
      case 'exhausted':
        deleteHeldLogin(reply, publicUrl);
        throw problem('TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE');
      case 'refused':
        throw wrongCode(factor);
      case 'session': {
        const { token, user } = admission;
        const maxAge = held.isRemembered ? config.sessionMaxAgeSeconds : null;
        if (isCookieUnwanted) deleteHeldLogin(reply, publicUrl);
        else setSessionCookie(reply, token, { maxAge, publicUrl, style: 'betterAuth' });
        return { token, user: shownUser(user) };
      }
    }
  }

  /**
   * Checks a code of somebody who is logged in. The first right code of an authenticator app turns the second factor
   * on: then all sessions end that began without it, and this one is replaced.
   */
  async function confirm(request: FastifyRequest, reply: FastifyReply, factor: SecondFactor) {
    const session = await loggedIn(context, request);
    if (session === null) throw problem('INVALID_TWO_FACTOR_COOKIE');
    const { token, user, userId } = session;
    await takeGuess(context, userId);
    const isFirst = user.twoFactorEnabled !== 1;
    if (isFirst && factor.kind === 'backupCode') throw problem('TWO_FACTOR_NOT_ENABLED');
    const renewed = await db.transaction().execute(async (trx) => {
      if (!(await isAsProven(trx, user))) throw problem('UNAUTHORIZED');
      const use = await useSecondFactor(trx, signer, userId, factor, clock());
      if (use === 'none' && factor.kind === 'totp') throw problem('TOTP_NOT_ENABLED');
      if (use !== 'right') throw wrongCode(factor);
      if (!isFirst) return null;
      await updateUser(trx, userId, { twoFactorEnabled: 1 }, toTimestamp(clock()));
      await endSessionsOf(trx, userId);
      return startSession(trx, userId, { ...context, maxAgeSeconds: config.sessionMaxAgeSeconds });
    });
    if (renewed === null) return { token, user: shownUser(user) };
    setSessionCookie(reply, renewed, { maxAge: config.sessionMaxAgeSeconds, publicUrl, style: 'betterAuth' });
    await noteChange(request, userId, 'twoFactorEnabled');
    return { token: renewed, user: shownUser({ ...user, twoFactorEnabled: 1 }) };
  }

  /** @throws NamedError INVALID_PASSWORD; ApiError too_many_requests when very many passwords are being hashed */
  async function withPassword<T>(
    request: FastifyRequest,
    password: string,
    work: (trx: Database, user: UserRow) => Promise<T>,
  ): Promise<T> {
    const user = await findUser(db, sessionOf(request).userId);
    if (user === null) throw problem('UNAUTHORIZED');
    if (isTooLong(password) || !(await passwords.verify(password, user.passwordHash))) {
      throw problem('INVALID_PASSWORD');
    }
    return db.transaction().execute(async (trx) => {
      // The password, or the second factor, may have changed during the check.
      if (!(await isAsProven(trx, user))) throw problem('INVALID_PASSWORD');
      return work(trx, user);
    });
  }

  function uriOf(secret: Uint8Array, { email }: UserRow, issuer = ''): string {
    return totpUri(secret, { issuer: issuer.trim() || new URL(publicUrl).host, account: email });
  }

  function noteChange(request: FastifyRequest, userId: string, field: string): Promise<void> {
    return noteAccountEvent(context, request, { action: 'updated', userId, changes: { fields: [field] } });
  }
};

function wrongCode({ kind }: SecondFactor): Error {
  return problem(kind === 'totp' ? 'INVALID_CODE' : 'INVALID_BACKUP_CODE');
}
