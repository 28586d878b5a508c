/**
 * The pages that links in mails lead to. Each is one form without a script: the forms are those of `/api/auth`, and whoever
 * has a front end of their own serves these paths there instead.
 */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply } from 'fastify';
import { type Cookies, setCsrfCookie } from '#api/auth/cookies.ts';
import { csrfToken } from '#api/auth/csrf.ts';
import type { Context } from '#api/context.ts';
import { fieldOf } from './form.ts';

/** No script, no frame, and forms only to ourselves. */
const POLICY = "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
const TEXT_LENGTH_MAX = 500;

export const accountPages: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  const { signer, random, config } = context;
  const { publicUrl } = config;
  /** '' unless PUBLIC_URL has a path: forms stay on the host that the page came from, so that cookies reach them. */
  const base = new URL(publicUrl).pathname.replace(/\/$/, '');

  /** The hidden fields of a form, and the cookie that belongs to them. */
  const protect = (cookies: Cookies, reply: FastifyReply): string => {
    const { token, cookie } = csrfToken(cookies, signer, random);
    setCsrfCookie(reply, cookie, publicUrl);
    return `${hidden('csrfToken', token)}${hidden('callbackUrl', `${publicUrl}/auth/login`)}`;
  };

  app.get('/auth/login', async (request, reply) => {
    const error = fieldOf(request.query, 'error').slice(0, TEXT_LENGTH_MAX);
    return sendPage(reply, 200, 'Log in', [
      ...(error === '' ? [] : [`<p role="alert">${escapeHtml(error)}</p>`]),
      form(
        `${base}/api/auth/callback/credentials`,
        protect(request.cookies, reply),
        `<p><label>E-mail <input name="email" type="email" autocomplete="username" required></label></p>
<p><label>Password <input name="password" type="password" autocomplete="current-password" required></label></p>`,
        'Log in',
      ),
    ]);
  });

  app.get('/auth/verify', async (request, reply) =>
    sendPage(reply, 200, 'Confirm your e-mail address', [
      form(
        `${base}/api/auth/callback/token`,
        protect(request.cookies, reply),
        hidden('token', fieldOf(request.query, 'token').slice(0, TEXT_LENGTH_MAX)),
        'Confirm and log in',
      ),
    ]),
  );

  app.get('/auth/forgot-password/reset', async (request, reply) =>
    sendPage(reply, 200, 'Choose a new password', [
      form(
        `${base}/api/auth/reset-password`,
        hidden('token', fieldOf(request.query, 'token').slice(0, TEXT_LENGTH_MAX)),
        '<p><label>New password <input name="password" type="password" autocomplete="new-password" required></label></p>',
        'Change the password',
      ),
    ]),
  );
};

/** @param parts HTML */
export function sendPage(reply: FastifyReply, status: number, title: string, parts: readonly string[]) {
  return (
    reply
      .code(status)
      .header('content-type', 'text/html; charset=utf-8')
      .header('content-security-policy', POLICY)
      // The address of these pages carries the token of a link.
      .header('referrer-policy', 'no-referrer')
      .send(
        `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1>\n${parts.join('\n')}\n</html>\n`,
      )
  );
}

function form(action: string, fields: string, inputs: string, submit: string): string {
  return `<form method="post" action="${action}">${fields}\n${inputs}\n<p><button>${submit}</button></p></form>`;
}

function hidden(name: string, value: string): string {
  return `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
