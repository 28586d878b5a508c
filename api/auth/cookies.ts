/** The names and attributes of the cookies of a login. */
import type { FastifyReply } from 'fastify';
import type { Seconds } from '#shared/clock.ts';

const SESSION = 'next-auth.session-token';
const CSRF = 'next-auth.csrf-token';

export type Cookies = Readonly<Record<string, string | undefined>>;

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

export function csrfCookie(cookies: Cookies): string | null {
  return cookies[`__Host-${CSRF}`] || cookies[CSRF] || null;
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

export function setCsrfCookie(reply: FastifyReply, value: string, publicUrl: string): void {
  const isSecure = isHttps(publicUrl);
  reply.setCookie(isSecure ? `__Host-${CSRF}` : CSRF, value, attributes(isSecure));
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
