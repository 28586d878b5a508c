/**
 * Login and logout in the form of NextAuth 4.
 *
 * Callers: anybody. The gateway limits logins.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { keepTypedEmail, setCsrfCookie, setSessionCookie } from '#api/auth/cookies.ts';
import { csrfToken } from '#api/auth/csrf.ts';
import type { Config } from '#api/config.ts';
import type { Context, Routes } from '#api/context.ts';
import { asApiError } from '#api/http/error-handler.ts';
import { prefersHtml } from '#api/http/error-page.ts';
import { redirectTo } from '#api/http/media.ts';
import { MapOf } from '#api/values/schemas.ts';
import { fieldErrors } from './account-forms.ts';
import { finishLogin, type Login, loggedIn, signOut } from './admission.ts';
import {
  ACCOUNT_PATH,
  acceptForms,
  callbackUrl,
  fieldOf,
  formFields,
  onSameHost,
  wantsJson,
} from './form.ts';
import { checkPassword, type LoginResult, redeemVerification, texts } from './login.ts';
import { loginReplies, sessionReplies, verificationReplies } from './login-replies.ts';
import { isFormOurs } from './protection.ts';
import { choiceFields, isRetryable, sendVerifyPage } from './verify-page.ts';

const Text = Type.String();
const csrf = { schema: { response: { 200: Type.Object({ csrfToken: Text }) } } };
const providers = { schema: { response: { 200: MapOf(MapOf(Text)) } } };
const session = {
  schema: {
    response: {
      200: Type.Object(
        {
          user: Type.Optional(Type.Object({ id: Text, name: Type.Union([Text, Type.Null()]), email: Text })),
          expires: Type.Optional(Text),
        },
        { description: 'Empty without a session.' },
      ),
    },
  },
};
const toPage = { schema: { response: { 302: redirectTo('a page') } } };
const login = {
  schema: { response: loginReplies },
  config: {
    refuses: ['bad_request', 'too_many_requests'],
    reads: formFields('email', 'password'),
  },
} as const;
const verification = {
  schema: { response: verificationReplies },
  config: {
    refuses: ['bad_request', 'too_many_requests'],
    reads: formFields('token', 'password', 'newPassword', 'name'),
  },
} as const;
const ending = {
  schema: { response: sessionReplies },
  config: { refuses: ['bad_request'], reads: formFields() },
} as const;

export const loginRoutes: Routes = async (app, { context }) => {
  const { random, config, signer } = context;
  const { publicUrl } = config;
  acceptForms(app);
  // A person who sends the form gets a page in every case, also when too many log in at once.
  app.setErrorHandler((cause, request, reply) => {
    const error = asApiError(cause);
    if (error.code === 'invalid_fields' && isFromPage(request)) {
      return sendVerifyPage(context, request, reply, request.body, {
        status: 400,
        problem: 'Please check what is marked below.',
        errors: fieldErrors({ fields: choiceFields }, error),
      });
    }
    if (!isFromPage(request) || error.code === 'internal_server_error') throw cause;
    return redirect(
      request,
      reply,
      `${publicUrl}/auth/login?error=${encodeURIComponent(error.message)}${targetOf(config, request, request.body)}`,
    );
  });

  app.get('/api/auth/csrf', csrf, async (request, reply) => {
    const { token, cookie } = csrfToken(request.cookies, signer, random);
    setCsrfCookie(reply, cookie, publicUrl);
    return { csrfToken: token };
  });

  app.get('/api/auth/providers', providers, async () =>
    Object.fromEntries(
      [
        { id: 'credentials', name: 'Credentials' },
        { id: 'token', name: 'Token' },
      ].map((provider) => [
        provider.id,
        {
          ...provider,
          type: 'credentials',
          signinUrl: `${publicUrl}/api/auth/signin/${provider.id}`,
          callbackUrl: `${publicUrl}/api/auth/callback/${provider.id}`,
        },
      ]),
    ),
  );

  app.get('/api/auth/session', session, async (request) => {
    const session = await loggedIn(context, request);
    if (session === null) return {};
    const { id, name, email } = session.user;
    return { user: { id, name, email }, expires: session.expiresAt };
  });

  app.get('/api/auth/signin', toPage, async (request, reply) => {
    const isOld = fieldOf(request.query, 'csrf') === 'true';
    const query = isOld ? `?csrf=true${targetOf(config, request, request.query)}` : '';
    return redirect(request, reply, `${publicUrl}/auth/login${query}`);
  });

  app.get('/api/auth/error', toPage, async (request, reply) => {
    const text = fieldOf(request.query, 'error');
    return redirect(
      request,
      reply,
      `${publicUrl}/auth/login?error=${encodeURIComponent(text)}${targetOf(config, request, request.query)}`,
    );
  });

  app.post('/api/auth/callback/credentials', login, async (request, reply) => {
    if (!isFormOurs(request, signer)) return askForForm(config, request, reply);
    const email = fieldOf(request.body, 'email');
    const result = await checkPassword(context, email, fieldOf(request.body, 'password'));
    return answer(context, request, reply, result, { provider: 'credentials', email });
  });

  app.post('/api/auth/callback/token', verification, async (request, reply) => {
    if (!isFormOurs(request, signer)) return askForForm(config, request, reply);
    const result = await redeemVerification(context, {
      token: fieldOf(request.body, 'token'),
      password: fieldOf(request.body, 'password'),
      newPassword: fieldOf(request.body, 'newPassword'),
      name: fieldOf(request.body, 'name'),
    });
    return answer(context, request, reply, result, { provider: 'token', email: null });
  });

  app.post('/api/auth/signout', ending, async (request, reply) => {
    if (!isFormOurs(request, signer)) return askForForm(config, request, reply);
    await signOut(context, request, reply);
    return go(request, reply, callbackUrl(fieldOf(request.body, 'callbackUrl'), publicUrl));
  });
};

function askForForm(config: Config, request: FastifyRequest, reply: FastifyReply) {
  const target = targetOf(config, request, request.body);
  return go(request, reply, `${config.publicUrl}/api/auth/signin?csrf=true${target}`);
}

/** Keeps the page that a person wants to reach through refusals, in the query. Programs know it themselves. */
function targetOf({ publicUrl }: Config, request: FastifyRequest, fields: unknown): string {
  const target = fieldOf(fields, 'callbackUrl');
  const isUsual = target === '' || target === `${publicUrl}${ACCOUNT_PATH}`;
  return isUsual || !isFromPage(request) ? '' : `&callbackUrl=${encodeURIComponent(target)}`;
}

async function answer(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  result: LoginResult,
  login: Login,
) {
  const { config } = context;
  const { publicUrl, sessionMaxAgeSeconds: maxAge } = config;
  const admission = await finishLogin(context, request, result, login);
  if (admission.kind === 'refused') {
    const { text } = admission;
    if (isFromPage(request) && isRetryable(text)) {
      return sendVerifyPage(context, request, reply, request.body, { status: 401, problem: text });
    }
    if (isFromPage(request) && login.email !== null) keepTypedEmail(reply, login.email, publicUrl);
    // Clients recognise this case by the address, not by the status.
    if (wantsJson(request.body) && text !== texts.unverified) reply.code(401);
    const target = targetOf(config, request, request.body);
    return go(request, reply, `${publicUrl}/api/auth/error?error=${encodeURIComponent(text)}${target}`);
  }
  setSessionCookie(reply, admission.token, { maxAge, publicUrl });
  keepTypedEmail(reply, '', publicUrl);
  return go(request, reply, callbackUrl(fieldOf(request.body, 'callbackUrl'), publicUrl));
}

function isFromPage(request: FastifyRequest): boolean {
  return prefersHtml(request) && !wantsJson(request.body);
}

/** Replies with `{url}` to programs, and with a redirect to pages. */
function go(request: FastifyRequest, reply: FastifyReply, url: string) {
  return wantsJson(request.body) ? { url } : redirect(request, reply, url);
}

/** Redirects to a page. Browsers stay on the host of their request. */
function redirect(request: FastifyRequest, reply: FastifyReply, url: string) {
  return reply
    .code(302)
    .header('location', isFromPage(request) ? onSameHost(url) : url)
    .send();
}
