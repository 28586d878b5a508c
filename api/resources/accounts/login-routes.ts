/**
 * Login and logout in the form of NextAuth 4, for pages and for programs.
 *
 * Callers: anybody. The gateway limits logins.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { csrfToken, setSessionCookie } from '#api/auth/cookies.ts';
import type { Routes } from '#api/context.ts';
import { redirectTo } from '#api/http/media.ts';
import { alert } from '#api/http/page.ts';
import { MapOf } from '#api/values/schemas.ts';
import { escapeHtml } from '#shared/page.ts';
import { ACCOUNT_PATH } from './account-page.ts';
import { acceptForms, fieldOf, isFormOurs, isFromPage, showAgain, wantsJson } from './form.ts';
import { checkPassword, finishLogin, loggedIn, redeemVerification, signOut, texts } from './login.ts';
import { sendLoginForm } from './pages.ts';

const Text = Type.String();
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
const Session = Type.Object(
  {
    user: Type.Optional(Type.Object({ id: Text, name: Text, email: Text })),
    expires: Type.Optional(Text),
  },
  { description: 'Empty without a session.' },
);

const callbacks = {
  credentials: {
    summary: 'Log in with e-mail address and password',
    fields: ['email', 'password'],
    check: checkPassword,
  },
  token: {
    summary: 'Log in with the token of a mail, and set a password',
    fields: ['token', 'password', 'name'],
    check: redeemVerification,
  },
} as const;

export const loginRoutes: Routes = async (app, { context }) => {
  const { config } = context;
  const { publicUrl } = config;
  acceptForms(app);
  showAgain(app, (_request, reply, shown) => sendLoginForm(context, reply, shown));

  for (const provider of ['credentials', 'token'] as const) {
    const { summary, fields, check } = callbacks[provider];
    app.post(
      `/api/auth/callback/${provider}`,
      { schema: { summary, response: loginReplies }, config: { reads: formFields(fields) } },
      async (request, reply) => {
        const { body } = request;
        if (!isFormOurs(request, context)) return askForForm(request, reply);
        const checked = await check(context, (name) => fieldOf(body, name));
        const outcome = await finishLogin(context, request, checked, {
          provider,
          email: provider === 'credentials' ? fieldOf(body, 'email') : null,
        });
        if (outcome.kind === 'refused') return refuse(request, reply, outcome.text);
        setSessionCookie(reply, outcome.token, { maxAge: config.sessionMaxAgeSeconds, publicUrl });
        return goOn(request, reply, ACCOUNT_PATH);
      },
    );
  }

  app.post(
    '/api/auth/signout',
    { schema: { summary: 'End the session', response: loggedOut }, config: { reads: formFields([]) } },
    async (request, reply) => {
      if (!isFormOurs(request, context)) return askForForm(request, reply);
      await signOut(context, request, reply);
      return goOn(request, reply, '/auth/login?notice=signed-out');
    },
  );

  function refuse(request: FastifyRequest, reply: FastifyReply, text: string) {
    if (isFromPage(request)) {
      const shown = { status: 401, message: alert(escapeHtml(text)), given: request.body, errors: {} };
      return sendLoginForm(context, reply, shown);
    }
    // Clients recognise this case by the address, not by the status.
    if (wantsJson(request.body) && text !== texts.unverified) reply.code(401);
    return go(request, reply, `${publicUrl}/api/auth/error?error=${encodeURIComponent(text)}`);
  }

  /** @param next the page that follows the form of a page, if the form names none */
  function goOn(request: FastifyRequest, reply: FastifyReply, next: string) {
    const fallback = isFromPage(request) ? publicUrl + next : '';
    return go(request, reply, callbackUrl(fieldOf(request.body, 'callbackUrl') || fallback, publicUrl));
  }

  function askForForm(request: FastifyRequest, reply: FastifyReply) {
    return go(request, reply, `${publicUrl}/api/auth/signin?csrf=true`);
  }
};

/** Programs and pages ask these routes before and after a login. */
export const sessionRoutes: Routes = async (app, { context }) => {
  const { publicUrl } = context.config;

  app.get(
    '/api/auth/csrf',
    {
      schema: {
        summary: 'Read the token that a login has to repeat',
        response: { 200: Type.Object({ csrfToken: Text }) },
      },
    },
    async (_request, reply) => ({ csrfToken: csrfToken(reply, context) }),
  );

  app.get(
    '/api/auth/providers',
    { schema: { summary: 'List the ways to log in', response: { 200: MapOf(MapOf(Text)) } } },
    async () => ({
      credentials: described('credentials', 'Credentials'),
      token: described('token', 'Token'),
    }),
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

  function described(id: string, name: string) {
    const signinUrl = `${publicUrl}/api/auth/signin/${id}`;
    return { id, name, type: 'credentials', signinUrl, callbackUrl: `${publicUrl}/api/auth/callback/${id}` };
  }
};

/** Describes a form, or JSON with the same fields. @param names of fields besides those of every form */
function formFields(names: readonly string[]) {
  const all = [...names, 'csrfToken', 'callbackUrl', 'json'];
  const shape = Type.Partial(Type.Object(Object.fromEntries(all.map((name) => [name, Text]))));
  return { 'application/x-www-form-urlencoded': shape, 'application/json': shape };
}

/** Returns the address if it is on our own origin, and otherwise our start page. @param given absolute, or a path */
function callbackUrl(given: string, publicUrl: string): string {
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
