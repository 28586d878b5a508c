/**
 * The cookies of a login: the session, and the token that proves that a form is ours. It must equal the token in the cookie,
 * which we have signed. That cookie is `token|signature`. Another site can neither read nor create one.
 */
import type { FastifyReply } from 'fastify';
import type { Random } from '#api/values/ids.ts';
import type { Seconds } from '#shared/clock.ts';
import type { Signer } from './signer.ts';

const SESSION = 'next-auth.session-token';
const CSRF = 'next-auth.csrf-token';
const TOKEN_BYTES = 32;

type Cookies = Readonly<Record<string, string | undefined>>;

/**
 * Both names are read, because the scheme behind the gateway may differ from the one before it. The prefix comes first:
 * without it, a neighbouring host can set the cookie over plain HTTP.
 */
const sessionNames = [`__Secure-${SESSION}`, SESSION] as const;

export function sessionCookie(cookies: Cookies): string | null {
  return sessionCookies(cookies)[0] ?? null;
}

/** Returns all sessions. There are two if the scheme changed. */
export function sessionCookies(cookies: Cookies): readonly string[] {
  return sessionNames.map((name) => cookies[name] ?? '').filter((value) => value !== '');
}

/** Sets the cookie of a new session, and deletes the one with the other name. */
export function setSessionCookie(
  reply: FastifyReply,
  token: string,
  { maxAge, publicUrl }: { readonly maxAge: Seconds; readonly publicUrl: string },
): void {
  const isSecure = isHttps(publicUrl);
  const name = isSecure ? `__Secure-${SESSION}` : SESSION;
  deleteSessionCookies(reply, publicUrl, name);
  reply.setCookie(name, token, { ...attributes(isSecure), maxAge });
}

/** @param kept a cookie that is replaced next, so it is not deleted */
export function deleteSessionCookies(reply: FastifyReply, publicUrl: string, kept = ''): void {
  for (const name of sessionNames) {
    if (name === kept || reply.request.cookies[name] === undefined) continue;
    // A browser accepts a name with the prefix only together with the attribute.
    const isSecure = isHttps(publicUrl) || name.startsWith('__Secure-');
    reply.setCookie(name, '', { ...attributes(isSecure), maxAge: 0 });
  }
}

function attributes(isSecure: boolean) {
  return {
    path: '/',
    httpOnly: true,
    sameSite: 'lax',
    secure: isSecure,
    encode: encodeURIComponent,
  } as const;
}

function isHttps(publicUrl: string): boolean {
  return publicUrl.startsWith('https:');
}

interface FormParts {
  readonly signer: Signer;
  readonly random: Random;
  readonly config: { readonly publicUrl: string };
}

/** Returns the token for the forms of a reply, and sets its cookie. Keeps the token of a valid cookie. */
export function csrfToken(reply: FastifyReply, { signer, random, config }: FormParts): string {
  const { cookies } = reply.request;
  const token = tokenOfCookie(cookies, signer) ?? Buffer.from(random(TOKEN_BYTES)).toString('hex');
  const isSecure = isHttps(config.publicUrl);
  const value = `${token}|${signer.sign(textOf(token))}`;
  reply.setCookie(isSecure ? `__Host-${CSRF}` : CSRF, value, attributes(isSecure));
  return token;
}

export function isCsrfTokenValid(cookies: Cookies, given: string, signer: Signer): boolean {
  return given !== '' && tokenOfCookie(cookies, signer) === given;
}

function tokenOfCookie(cookies: Cookies, signer: Signer): string | null {
  const [token = '', signature = ''] = (cookies[`__Host-${CSRF}`] || cookies[CSRF] || '').split('|');
  return token !== '' && signer.verify(textOf(token), signature) ? token : null;
}

function textOf(token: string): string {
  return `floodgate.csrf.v1:${token}`;
}
