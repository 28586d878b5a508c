/** The names and attributes of the cookies of a login. */
import type { FastifyReply } from 'fastify';
import type { Seconds } from '#shared/clock.ts';

/** The cookie of a session for each login API: NextAuth's up to release 5.1, Better Auth's since 5.2. */
const sessionNames = {
  nextAuth: 'next-auth.session-token',
  betterAuth: 'formbricks.session_token',
} as const;

/** Better Auth's name without a prefix. Clients may send it, but no reply sets it. */
const DEFAULT_NAME = 'better-auth.session_token';
/** The cookie of a login that waits for its second factor. */
const HELD = 'formbricks.two_factor';
const HELD_MAX_AGE: Seconds = 600;
/** The cookie with the address of a refused login. */
const TYPED = 'floodgate.login_email';
const TYPED_MAX_AGE: Seconds = 300;
const EMAIL_LENGTH_MAX = 255;
const CSRF = 'next-auth.csrf-token';

export type Cookies = Readonly<Record<string, string | undefined>>;
type SessionStyle = keyof typeof sessionNames;

const plainNames = [sessionNames.betterAuth, sessionNames.nextAuth, DEFAULT_NAME];
/**
 * Returns every name with and without the prefix, because the scheme behind the gateway may differ from the one before
 * it. The prefix comes first: without it, a neighbouring host can set the cookie over plain HTTP.
 */
const allSessionNames = [...plainNames.map((name) => `__Secure-${name}`), ...plainNames];

/** Returns the session of either login API, because both count everywhere. */
export function sessionCookie(cookies: Cookies): string | null {
  return sessionCookies(cookies)[0] ?? null;
}

/** Returns all sessions. There are several if a client kept the cookies of both login APIs. */
export function sessionCookies(cookies: Cookies): readonly string[] {
  return allSessionNames.map((name) => cookies[name] ?? '').filter((value) => value !== '');
}

export function csrfCookie(cookies: Cookies): string | null {
  return cookies[`__Host-${CSRF}`] || cookies[CSRF] || null;
}

/**
 * Sets the cookie of a new session, and deletes those of the other login API and of a login that waits.
 *
 * @param maxAge null if the browser deletes the cookie when it is closed
 */
export function setSessionCookie(
  reply: FastifyReply,
  token: string,
  {
    maxAge,
    publicUrl,
    style,
  }: {
    readonly maxAge: Seconds | null;
    readonly publicUrl: string;
    readonly style: SessionStyle;
  },
): void {
  const isSecure = isHttps(publicUrl);
  const name = isSecure ? `__Secure-${sessionNames[style]}` : sessionNames[style];
  deleteSessionCookies(reply, publicUrl, name);
  if (heldLogin(reply.request.cookies) !== null) deleteHeldLogin(reply, publicUrl);
  reply.setCookie(name, token, { ...attributes(isSecure), ...(maxAge === null ? {} : { maxAge }) });
}

/** @param kept a cookie that is replaced next, so it is not deleted */
export function deleteSessionCookies(reply: FastifyReply, publicUrl: string, kept = ''): void {
  for (const name of allSessionNames) {
    if (name === kept || reply.request.cookies[name] === undefined) continue;
    // A browser accepts a name with the prefix only together with the attribute.
    const isSecure = isHttps(publicUrl) || name.startsWith('__Secure-');
    reply.setCookie(name, '', { ...attributes(isSecure), maxAge: 0 });
  }
}

interface HeldLogin {
  readonly token: string;
  /** Whether the session that follows outlives the browser window. */
  readonly isRemembered: boolean;
}

export function heldLogin(cookies: Cookies): HeldLogin | null {
  const value = cookies[`__Secure-${HELD}`] || cookies[HELD] || '';
  const [token = '', forgotten] = value.split('.');
  return token === '' ? null : { token, isRemembered: forgotten === undefined };
}

export function setHeldLogin(
  reply: FastifyReply,
  { token, isRemembered }: HeldLogin,
  publicUrl: string,
): void {
  const isSecure = isHttps(publicUrl);
  const options = { ...attributes(isSecure), maxAge: HELD_MAX_AGE };
  // A token has no dot.
  reply.setCookie(isSecure ? `__Secure-${HELD}` : HELD, isRemembered ? token : `${token}.0`, options);
}

export function deleteHeldLogin(reply: FastifyReply, publicUrl: string): void {
  const isSecure = isHttps(publicUrl);
  reply.setCookie(isSecure ? `__Secure-${HELD}` : HELD, '', { ...attributes(isSecure), maxAge: 0 });
}

/** Returns the address of a login that was refused, for the next try. */
export function typedEmail(cookies: Cookies): string {
  return cookies[TYPED] ?? '';
}

/** Keeps the address in a cookie, because an address in a query would get into logs. @param email '' to forget it */
export function keepTypedEmail(reply: FastifyReply, email: string, publicUrl: string): void {
  if (email === '' && reply.request.cookies[TYPED] === undefined) return;
  const maxAge = email === '' ? 0 : TYPED_MAX_AGE;
  reply.setCookie(TYPED, email.slice(0, EMAIL_LENGTH_MAX), { ...attributes(isHttps(publicUrl)), maxAge });
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
