/**
 * Login and logout in the form of NextAuth 4.
 *
 * Callers: anybody. The gateway limits logins.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { setCsrfCookie, setSessionCookie } from '#api/auth/cookies.ts';
import { csrfToken } from '#api/auth/csrf.ts';
import type { Context, Routes } from '#api/context.ts';
import { redirectTo } from '#api/http/media.ts';
import { MapOf, Nullable } from '#api/values/schemas.ts';
import { ACCOUNT_PATH } from './account-page.ts';
import {
  acceptForms,
  answerForms,
  fieldOf,
  formFields,
  isFormOurs,
  isFromPage,
  sendForm,
  wantsJson,
} from './form.ts';
import { checkPassword, finishLogin, loggedIn, redeemVerification, signOut, texts } from './login.ts';
import { forms, saidOf } from './pages.ts';

const Text = Type.String();
const User = Type.Object({ id: Text, name: Nullable(Text), email: Text });
const Session = Type.Object(
  { user: Type.Optional(User), expires: Type.Optional(Text) },
  { description: 'Empty without a session.' },
);
const Url = Type.Object({ url: Text });
const loggedOut = {
  200: {
    ...Url,
    description: 'With `json: true` in the body: where to go next, with the session as a cookie.',
  },
  302: redirectTo('a page, without `json: true`'),
};
const loginReplies = {
  ...loggedOut,
  401: { ...Url, description: 'With `json: true`: refused; the address says why.' },
};

export const loginRoutes: Routes = async (app, { context }) => {
  const { config } = context;
  const { publicUrl } = config;
  acceptForms(app);
  answerForms(app, context, forms);

  app.post(
    '/api/auth/callback/credentials',
    {
      schema: { summary: 'Log in with e-mail address and password', response: loginReplies },
      config: { reads: formFields('email', 'password') },
    },
    async (request, reply) => {
      if (!isFormOurs(request, context)) return askForForm(request, reply);
      const email = fieldOf(request.body, 'email');
      const checked = await checkPassword(context, email, fieldOf(request.body, 'password'));
      return answer(
        request,
        reply,
        await finishLogin(context, request, checked, { provider: 'credentials', email }),
      );
    },
  );

  app.post(
    '/api/auth/callback/token',
    {
      schema: { summary: 'Log in with the token of a mail, and set a password', response: loginReplies },
      config: { reads: formFields('token', 'password', 'name') },
    },
    async (request, reply) => {
      if (!isFormOurs(request, context)) return askForForm(request, reply);
      const checked = await redeemVerification(context, {
        token: fieldOf(request.body, 'token'),
        password: fieldOf(request.body, 'password'),
        name: fieldOf(request.body, 'name'),
      });
      return answer(
        request,
        reply,
        await finishLogin(context, request, checked, { provider: 'token', email: null }),
      );
    },
  );

  app.post(
    '/api/auth/signout',
    { schema: { summary: 'End the session', response: loggedOut }, config: { reads: formFields() } },
    async (request, reply) => {
      if (!isFormOurs(request, context)) return askForForm(request, reply);
      await signOut(context, request, reply);
      return go(request, reply, callbackUrl(fieldOf(request.body, 'callbackUrl'), publicUrl));
    },
  );

  function answer(
    request: FastifyRequest,
    reply: FastifyReply,
    admission: Awaited<ReturnType<typeof finishLogin>>,
  ) {
    if (admission.kind === 'session') {
      setSessionCookie(reply, admission.token, { maxAge: config.sessionMaxAgeSeconds, publicUrl });
      const fallback = isFromPage(request) ? `${publicUrl}${ACCOUNT_PATH}` : '';
      return go(request, reply, callbackUrl(fieldOf(request.body, 'callbackUrl') || fallback, publicUrl));
    }
    const { text } = admission;
    const sent = forms.find(({ action }) => action === request.routeOptions.url);
    if (isFromPage(request) && sent !== undefined) {
      return sendRefused(context, request, reply, sent, text);
    }
    // Clients recognise this case by the address, not by the status.
    if (wantsJson(request.body) && text !== texts.unverified) reply.code(401);
    return go(request, reply, `${publicUrl}/api/auth/error?error=${encodeURIComponent(text)}`);
  }

  function askForForm(request: FastifyRequest, reply: FastifyReply) {
    return go(request, reply, `${publicUrl}/api/auth/signin?csrf=true`);
  }
};

/** Programs and pages ask these routes before and after a login. */
export const sessionRoutes: Routes = async (app, { context }) => {
  const { random, config, signer } = context;
  const { publicUrl } = config;

  app.get(
    '/api/auth/csrf',
    {
      schema: {
        summary: 'Read the token that a login has to repeat',
        response: { 200: Type.Object({ csrfToken: Text }) },
      },
    },
    async (request, reply) => {
      const { token, cookie } = csrfToken(request.cookies, signer, random);
      setCsrfCookie(reply, cookie, publicUrl);
      return { csrfToken: token };
    },
  );

  app.get(
    '/api/auth/providers',
    { schema: { summary: 'List the ways to log in', response: { 200: MapOf(MapOf(Text)) } } },
    async () => ({ credentials: provider('credentials', 'Credentials'), token: provider('token', 'Token') }),
  );

  app.get(
    '/api/auth/session',
    { schema: { summary: 'Read whose session this is', response: { 200: Session } } },
    async (request) => {
      const session = await loggedIn(context, request);
      if (session === null) return {};
      const { id, name, email } = session.user;
      return { user: { id, name, email }, expires: session.expiresAt };
    },
  );

  for (const name of ['signin', 'error']) {
    app.get(`/api/auth/${name}`, { schema: { hide: true } }, async (request, reply) => {
      const { search } = new URL(request.url, publicUrl);
      return redirect(request, reply, `${publicUrl}/auth/login${search}`);
    });
  }

  function provider(id: string, name: string) {
    const signinUrl = `${publicUrl}/api/auth/signin/${id}`;
    return { id, name, type: 'credentials', signinUrl, callbackUrl: `${publicUrl}/api/auth/callback/${id}` };
  }
};

function sendRefused(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  form: (typeof forms)[number],
  text: string,
): FastifyReply {
  const errors =
    text === texts.invalid
      ? { email: 'Is this the address of your account?', password: 'Is this its password?' }
      : {};
  const message = saidOf(text, reply.server.basePath);
  return sendForm(context, request, reply, form, request.body, { status: 401, message, errors });
}

/** Returns the address if it is on our own origin, and otherwise our start page. @param given absolute, or a path */
export function callbackUrl(given: string, publicUrl: string): string {
  const url = given !== '' && URL.canParse(given, publicUrl) ? new URL(given, publicUrl) : null;
  return url !== null && url.origin === new URL(publicUrl).origin ? url.href : publicUrl;
}

/** Replies with `{url}` to programs, and with a redirect to pages. */
function go(request: FastifyRequest, reply: FastifyReply, url: string) {
  return wantsJson(request.body) ? { url } : redirect(request, reply, url);
}

/**
 * Redirects to a page. Browsers stay on the host of their request, whose cookies they have and which may differ from
 * PUBLIC_URL.
 */
function redirect(request: FastifyRequest, reply: FastifyReply, url: string) {
  const { pathname, search, hash } = new URL(url);
  // Two slashes at the beginning would name another host.
  const path = `${pathname.replace(/^\/+/, '/')}${search}${hash}`;
  return reply
    .code(302)
    .header('location', isFromPage(request) ? path : url)
    .send();
}
