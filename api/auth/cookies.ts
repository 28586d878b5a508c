/** The two cookies of a login, and how they are read and written (RFC 6265). */
import type { Seconds } from '#shared/clock.ts';

const SESSION = 'next-auth.session-token';
const CSRF = 'next-auth.csrf-token';

/** Longer headers carry nothing of ours. */
const HEADER_LENGTH_MAX = 16_384;

/** Read under both names: the scheme behind the gateway may differ from the one in front of it. */
export function sessionCookie(header: string | undefined): string | null {
  return readCookie(header, `__Secure-${SESSION}`) ?? readCookie(header, SESSION);
}

export function csrfCookie(header: string | undefined): string | null {
  return readCookie(header, `__Host-${CSRF}`) ?? readCookie(header, CSRF);
}

/** @param maxAgeSeconds 0 takes the cookie away */
export function setSessionCookie(token: string, maxAgeSeconds: Seconds, publicUrl: string): string {
  return setCookie(isHttps(publicUrl) ? `__Secure-${SESSION}` : SESSION, token, maxAgeSeconds, publicUrl);
}

/** Lives as long as the browser is open. */
export function setCsrfCookie(value: string, publicUrl: string): string {
  return setCookie(isHttps(publicUrl) ? `__Host-${CSRF}` : CSRF, value, null, publicUrl);
}

function setCookie(name: string, value: string, maxAge: Seconds | null, publicUrl: string): string {
  return [
    `${name}=${encodeURIComponent(value)}`,
    'Path=/',
    'HttpOnly',
    'SameSite=Lax',
    ...(maxAge === null ? [] : [`Max-Age=${maxAge}`]),
    ...(isHttps(publicUrl) ? ['Secure'] : []),
  ].join('; ');
}

function isHttps(publicUrl: string): boolean {
  return publicUrl.startsWith('https:');
}

/** The first of that name; null when there is none, or it is not decodable. */
function readCookie(header: string | undefined, name: string): string | null {
  if (header === undefined || header.length > HEADER_LENGTH_MAX) return null;
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=');
    if (equals < 0 || pair.slice(0, equals).trim() !== name) continue;
    try {
      const value = decodeURIComponent(pair.slice(equals + 1).trim());
      return value === '' ? null : value;
    } catch {
      return null;
    }
  }
  return null;
}
