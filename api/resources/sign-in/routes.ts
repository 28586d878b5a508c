/**
 * Login and logout in the format of Better Auth, which Formbricks has used since release 5.2. The sessions are those of
 * the older login. Codes of a second factor are counted together, and passwords by route: the gateway counts those of
 * the older login.
 *
 * Callers: anybody, limited by address. Pages: those of our own origin.
 */
import { Type } from 'typebox';
import { setHeldLogin, setSessionCookie } from '#api/auth/cookies.ts';
import { normalizeEmail } from '#api/auth/password.ts';
import { hashToken } from '#api/auth/session.ts';
import type { Routes } from '#api/context.ts';
import { finishLogin, holdLogin, loggedIn, signOut } from '#api/resources/accounts/admission.ts';
import { checkPassword, texts } from '#api/resources/accounts/login.ts';
import { nameErrors, ownUrl, problem, refuseForeignOrigins } from './errors.ts';
import { Session, shownUser, User } from './shapes.ts';

const Text = Type.String();

export const signInRoutes: Routes = async (app, { context }) => {
  const { config } = context;
  const { publicUrl } = config;
  const onRequest = refuseForeignOrigins(publicUrl);
  nameErrors(app);

  app.post(
    '/api/auth/sign-in/email',
    {
      schema: {
        body: Type.Object({
          email: Text,
          password: Text,
          callbackURL: Type.Optional(Text),
          rememberMe: Type.Optional(Type.Boolean()),
        }),
        response: {
          200: Type.Union([
            Type.Object({
              redirect: Type.Boolean({ description: 'Whether to go to `url` now.' }),
              token: Text,
              url: Type.Optional(Text),
              user: User,
            }),
            Type.Object(
              { twoFactorRedirect: Type.Literal(true), twoFactorMethods: Type.Array(Text) },
              { description: 'The second factor is missing, see `POST /api/auth/two-factor/verify-totp`.' },
            ),
          ]),
        },
      },
      config: { limit: 'auth.signIn', refuses: ['bad_request', 'not_authenticated'] },
      onRequest,
    },
    async (request, reply) => {
      const { email, password, callbackURL, rememberMe } = request.body;
      const url = ownUrl(callbackURL, publicUrl, 'INVALID_CALLBACK_URL') === null ? null : callbackURL;
      if (normalizeEmail(email) === null) throw problem('INVALID_EMAIL');
      const result = await checkPassword(context, email, password);
      const login = { provider: 'credentials', email, factor: null } as const;
      const admission = await finishLogin(context, request, result, login);
      const isRemembered = rememberMe !== false;
      if (admission.kind === 'refused') {
        if (admission.text !== texts.secondFactorRequired || result.kind === 'refused') {
          throw refusal(admission.text);
        }
        const held = await holdLogin(context, result.user);
        setHeldLogin(reply, { token: held, isRemembered }, publicUrl);
        return { twoFactorRedirect: true as const, twoFactorMethods: ['totp'] };
      }
      const { token, user } = admission;
      const maxAge = isRemembered ? config.sessionMaxAgeSeconds : null;
      setSessionCookie(reply, token, { maxAge, publicUrl, style: 'betterAuth' });
      return { redirect: url !== null, token, ...(url === null ? {} : { url }), user: shownUser(user) };
    },
  );

  app.post(
    '/api/auth/sign-out',
    { schema: { response: { 200: Type.Object({ success: Type.Boolean() }) } }, onRequest },
    async (request, reply) => {
      await signOut(context, request, reply);
      return { success: true };
    },
  );

  app.get(
    '/api/auth/get-session',
    {
      schema: {
        response: {
          200: Type.Unsafe<unknown>({
            anyOf: [Type.Object({ session: Session, user: User }), Type.Null()],
            description: 'null without a session.',
          }),
        },
      },
    },
    async (request, reply) => {
      const session = await loggedIn(context, request);
      // Fastify sends no body for null.
      if (session === null) return reply.type('application/json; charset=utf-8').send('null');
      const { token, user, userId, createdAt, expiresAt } = session;
      return {
        session: {
          id: hashToken(token),
          token,
          userId,
          createdAt,
          updatedAt: createdAt,
          expiresAt,
          ipAddress: null,
          userAgent: null,
        },
        user: shownUser(user),
      };
    },
  );
};

function refusal(text: string): Error {
  switch (text) {
    case texts.unverified:
      return problem('EMAIL_NOT_VERIFIED');
    case texts.inactive:
      return problem('ACCOUNT_INACTIVE', text);
    default:
      return problem('INVALID_EMAIL_OR_PASSWORD');
  }
}
