/** The names and attributes of the two cookies of a login. */
import type { FastifyReply } from 'fastify';
import type { Seconds } from '#shared/clock.ts';

const SESSION = 'next-auth.session-token';
const CSRF = 'next-auth.csrf-token';

export type Cookies = Readonly<Record<string, string | undefined>>;

/** Both names are read, because the scheme behind the gateway may differ from the one in front of it. */
export function sessionCookie(cookies: Cookies): string | null {
  return cookies[`__Secure-${SESSION}`] || cookies[SESSION] || null;
}

export function csrfCookie(cookies: Cookies): string | null {
  return cookies[`__Host-${CSRF}`] || cookies[CSRF] || null;
}

/** @param maxAge seconds; 0 deletes the cookie */
export function setSessionCookie(
  reply: FastifyReply,
  token: string,
  maxAge: Seconds,
  publicUrl: string,
): void {
  const isSecure = isHttps(publicUrl);
  reply.setCookie(isSecure ? `__Secure-${SESSION}` : SESSION, token, { ...attributes(isSecure), maxAge });
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
