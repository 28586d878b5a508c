/**
 * Sign-up, forgotten passwords and verification in the format of Better Auth. POST /api/auth/reset-password is in
 * accounts/routes.ts, because it has one path for both kinds of clients. No reply reveals whether an address has an
 * account.
 *
 * Callers: anybody, limited by address. Pages: those of our own origin.
 */
import { Type } from 'typebox';
import { setSessionCookie } from '#api/auth/cookies.ts';
import { isTooLong, isTooShort, normalizeEmail, passwordProblem } from '#api/auth/password.ts';
import type { Context, Routes } from '#api/context.ts';
import { invalidFields, NamedError } from '#api/errors.ts';
import { redirectTo } from '#api/http/media.ts';
import { refusing } from '#api/http/refuses.ts';
import { newId } from '#api/ids.ts';
import { forgotPassword, resendVerification, resetPage, signUp } from '#api/resources/accounts/actions.ts';
import { finishLogin } from '#api/resources/accounts/admission.ts';
import { redeemVerification, texts } from '#api/resources/accounts/login.ts';
import { CLOSED, isSignupOpen } from '#api/resources/accounts/signup.ts';
import { findToken } from '#api/resources/accounts/store.ts';
import { plainName } from '#api/resources/organizations/name.ts';
import { withQuery } from '#api/survey-url.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { nameErrors, ownUrl, problem, refuseForeignOrigins } from './errors.ts';
import { shownUser, User } from './shapes.ts';

const Text = Type.String();
const Done = Type.Object({ status: Type.Boolean() });

export const signInAccountRoutes: Routes = async (app, { context }) => {
  const { db, clock, random, config } = context;
  const { publicUrl } = config;
  const { basePath } = app;
  const onRequest = refuseForeignOrigins(publicUrl);
  nameErrors(app);

  app.post(
    '/api/auth/sign-up/email',
    {
      schema: {
        body: Type.Object({ name: Text, email: Text, password: Text, callbackURL: Type.Optional(Text) }),
        response: {
          200: Type.Object(
            { token: Type.Null(), user: User },
            { description: 'No session begins before the address is verified.' },
          ),
        },
      },
      config: { limit: 'auth.signup', refuses: ['bad_request'] },
      onRequest: [onRequest, refuseWhileClosed(context)],
    },
    async (request) => {
      const { password, callbackURL } = request.body;
      const next = ownUrl(callbackURL, publicUrl, 'INVALID_CALLBACK_URL');
      const name = plainName(request.body.name);
      const email = addressIn(request.body.email);
      checkNewPassword(password);
      const id = await signUp(context, request, { name, email, password }, next);
      const now = toTimestamp(clock());
      return {
        token: null,
        user: shownUser({
          // A known address gets an invented id.
          id: id ?? newId(random),
          name,
          email,
          emailVerified: null,
          createdAt: now,
          updatedAt: now,
          twoFactorEnabled: 0,
        }),
      };
    },
  );

  app.post(
    '/api/auth/request-password-reset',
    {
      schema: {
        body: Type.Object({ email: Text, redirectTo: Type.Optional(Text) }),
        response: { 200: Type.Object({ status: Type.Boolean(), message: Text }) },
      },
      config: { limit: 'auth.forgotPassword', refuses: ['bad_request'] },
      onRequest,
    },
    async (request, reply) => {
      const page = ownUrl(request.body.redirectTo, publicUrl, 'INVALID_REDIRECT_URL');
      if (page !== null && mayBeSurvey(page)) throw problem('INVALID_REDIRECT_URL');
      forgotPassword(context, reply, addressIn(request.body.email), page ?? resetPage(publicUrl));
      return {
        status: true,
        message: 'If this email exists in our system, check your email for the reset link',
      };
    },
  );

  app.post(
    '/api/auth/send-verification-email',
    {
      schema: {
        body: Type.Object({ email: Text, callbackURL: Type.Optional(Text) }),
        response: { 200: Done },
      },
      config: { limit: 'auth.verifyEmail', refuses: ['bad_request'] },
      onRequest,
    },
    async (request, reply) => {
      const next = ownUrl(request.body.callbackURL, publicUrl, 'INVALID_CALLBACK_URL');
      resendVerification(context, reply, { email: addressIn(request.body.email) }, next);
      return { status: true };
    },
  );

  // Programs that only open links must not use them up, and the link alone does not prove who chose the password.
  app.get(
    '/api/auth/verify-email',
    {
      schema: {
        querystring: Type.Object({ token: Text, callbackURL: Type.Optional(Text) }),
        response: { 302: redirectTo('the page that asks for the password of the sign-up') },
      },
      config: { refuses: ['not_authenticated', 'forbidden'] },
    },
    async (request, reply) => {
      const { token, callbackURL } = request.query;
      const next = ownUrl(callbackURL, publicUrl, 'INVALID_CALLBACK_URL');
      const isKnown = (await findToken(db, 'verifyEmail', token, clock())) !== null;
      if (!isKnown && next === null) throw problem('INVALID_TOKEN');
      if (!isKnown) return reply.redirect(withQuery(next ?? publicUrl, { error: 'INVALID_TOKEN' }));
      const query = new URLSearchParams({ token, ...(next === null ? {} : { callbackUrl: next }) });
      return reply.redirect(`${basePath}/auth/verify?${query}`);
    },
  );

  app.post(
    '/api/auth/verify-email',
    {
      schema: {
        body: Type.Object({
          token: Text,
          password: Type.Optional(Type.String({ description: 'The one of the sign-up.' })),
          newPassword: Type.Optional(Type.String({ description: 'Replaces that of the sign-up.' })),
          name: Type.Optional(Text),
        }),
        response: { 200: Type.Object({ status: Type.Boolean(), token: Text, user: User }) },
      },
      config: { limit: 'auth.signIn', refuses: ['bad_request', 'not_authenticated'] },
      onRequest,
    },
    async (request, reply) => {
      const { token, password = '', newPassword = '', name = '' } = request.body;
      const result = await redeemVerification(context, { token, password, newPassword, name });
      const admission = await finishLogin(context, request, result, {
        provider: 'token',
        email: null,
        factor: null,
      });
      if (admission.kind === 'refused') throw refusal(admission.text);
      const { user, token: sessionToken } = admission;
      const maxAge = config.sessionMaxAgeSeconds;
      setSessionCookie(reply, sessionToken, { maxAge, publicUrl, style: 'betterAuth' });
      return { status: true, token: sessionToken, user: shownUser(user) };
    },
  );
};

function refuseWhileClosed(context: Context) {
  const refuse = async (): Promise<void> => {
    if (await isSignupOpen(context)) return;
    throw new NamedError('bad_request', 'EMAIL_PASSWORD_SIGN_UP_DISABLED', CLOSED);
  };
  return refusing(refuse, 'bad_request');
}

/**
 * Whether the page may be a survey. Its author can read the query of the page in the answers, including the token of a
 * link.
 */
function mayBeSurvey(url: string): boolean {
  const { pathname } = new URL(url);
  try {
    return decodeURIComponent(pathname).includes('/s/');
  } catch {
    return true;
  }
}

function addressIn(text: string): string {
  const email = normalizeEmail(text);
  if (email === null) throw problem('INVALID_EMAIL');
  return email;
}

function checkNewPassword(password: string): void {
  if (isTooShort(password)) throw problem('PASSWORD_TOO_SHORT');
  if (isTooLong(password)) throw problem('PASSWORD_TOO_LONG');
  const reason = passwordProblem(password);
  if (reason !== null) throw invalidFields({ password: reason });
}

function refusal(text: string): Error {
  switch (text) {
    case texts.alreadyVerified:
      return problem('EMAIL_ALREADY_VERIFIED');
    case texts.inactive:
      return problem('ACCOUNT_INACTIVE', text);
    case texts.passwordNeeded:
    case texts.wrongPassword:
    case texts.tooManyPasswords:
      return problem('INVALID_PASSWORD', text);
    default:
      return problem('INVALID_TOKEN');
  }
}
