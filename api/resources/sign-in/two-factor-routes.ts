/**
 * The second factor of an account: codes of an authenticator app, and backup codes, in the format of Better Auth.
 *
 * Callers: sessions, with the password of the account, to set it up; anybody whose login waits for a code, to finish
 * it. Pages: those of our own origin. At most five codes and passwords a minute for each account.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { deleteHeldLogin, heldLogin, setSessionCookie } from '#api/auth/cookies.ts';
import { forPeople, sessionOf } from '#api/auth/plugin.ts';
import type { SecondFactor } from '#api/auth/second-factor.ts';
import type { Routes } from '#api/context.ts';
import { finishHeldLogin, loggedIn, takeGuess } from '#api/resources/accounts/admission.ts';
import { nameErrors, problem, refuseForeignOrigins } from './errors.ts';
import { shownUser, User } from './shapes.ts';
import { beginSetUp, confirmCode, readSecret, renewCodes, turnOff, uriOf, wrongCode } from './two-factor.ts';

const ISSUER_LENGTH_MAX = 100;

const Text = Type.String();
const Codes = Type.Array(Text);
const WithPassword = Type.Object({ password: Text });
const trustDevice = Type.Optional(
  Type.Boolean({ description: 'Accepted and ignored: every login needs the second factor.' }),
);
const LoggedIn = Type.Object({ token: Text, user: User });

const setUp = {
  ...forPeople,
  limit: 'auth.twoFactor',
  refuses: ['bad_request'],
  refusedAs: { action: 'updated', targetType: 'user', param: null },
} as const;
const verification = { refuses: ['bad_request', 'not_authenticated', 'too_many_requests'] } as const;

export const twoFactorRoutes: Routes = async (app, { context }) => {
  const { config } = context;
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
      const begun = await beginSetUp(context, proofOf(request, password));
      return { totpURI: uriOf(context, begun, issuer), backupCodes: begun.backupCodes };
    },
  );

  app.post(
    '/api/auth/two-factor/get-totp-uri',
    {
      schema: { body: WithPassword, response: { 200: Type.Object({ totpURI: Text }) } },
      config: setUp,
      onRequest,
    },
    async (request) => {
      const enrolled = await readSecret(context, proofOf(request, request.body.password));
      return { totpURI: uriOf(context, enrolled) };
    },
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
      const proof = proofOf(request, request.body.password);
      return { status: true, backupCodes: await renewCodes(context, request, proof) };
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
      await turnOff(context, request, proofOf(request, request.body.password));
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
      const factor = { kind: 'totp', code: request.body.code } as const;
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

  /** Finishes a login that waits for its second factor. @returns null if there is none */
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

  /** Checks a code of somebody who is logged in. The first one replaces the session. */
  async function confirm(request: FastifyRequest, reply: FastifyReply, factor: SecondFactor) {
    const session = await loggedIn(context, request);
    if (session === null) throw problem('INVALID_TWO_FACTOR_COOKIE');
    const { token, user, userId } = session;
    await takeGuess(context, userId);
    const renewed = await confirmCode(context, request, user, factor);
    if (renewed === null) return { token, user: shownUser(user) };
    setSessionCookie(reply, renewed, { maxAge: config.sessionMaxAgeSeconds, publicUrl, style: 'betterAuth' });
    return { token: renewed, user: shownUser({ ...user, twoFactorEnabled: 1 }) };
  }
};

function proofOf(request: FastifyRequest, password: string) {
  return { userId: sessionOf(request).userId, password };
}
