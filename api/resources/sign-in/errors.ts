/** The errors of these routes, with the codes that clients of Better Auth know. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type ApiError, type Code, FieldError, NamedError, RetryLater } from '#api/errors.ts';
import { asApiError } from '#api/http/error-handler.ts';
import { refusing } from '#api/http/refuses.ts';

/** The documented codes, with the status and the text of each. */
const named = {
  INVALID_EMAIL: ['bad_request', 'Invalid email'],
  INVALID_EMAIL_OR_PASSWORD: ['not_authenticated', 'Invalid email or password'],
  INVALID_PASSWORD: ['bad_request', 'Invalid password'],
  ACCOUNT_INACTIVE: ['forbidden', 'Account inactive'],
  EMAIL_NOT_VERIFIED: ['forbidden', 'Email not verified'],
  EMAIL_ALREADY_VERIFIED: ['bad_request', 'Email is already verified'],
  PASSWORD_TOO_SHORT: ['bad_request', 'Password too short'],
  PASSWORD_TOO_LONG: ['bad_request', 'Password too long'],
  INVALID_TOKEN: ['not_authenticated', 'Invalid token'],
  INVALID_ORIGIN: ['forbidden', 'Invalid origin'],
  INVALID_CALLBACK_URL: ['forbidden', 'Invalid callbackURL'],
  INVALID_REDIRECT_URL: ['forbidden', 'Invalid redirectURL'],
  INVALID_CODE: ['not_authenticated', 'Invalid code'],
  INVALID_BACKUP_CODE: ['not_authenticated', 'Invalid backup code'],
  INVALID_TWO_FACTOR_COOKIE: ['not_authenticated', 'Invalid two factor cookie'],
  TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE: ['bad_request', 'Too many attempts. Sign in again.'],
  TOTP_NOT_ENABLED: ['bad_request', 'TOTP not enabled'],
  TWO_FACTOR_NOT_ENABLED: ['bad_request', "Two factor isn't enabled"],
  TWO_FACTOR_ALREADY_ENABLED: ['bad_request', 'Two factor is enabled already. Disable it first.'],
  UNAUTHORIZED: ['not_authenticated', 'Unauthorized'],
} as const satisfies Readonly<Record<string, readonly [Code, string]>>;

type Name = keyof typeof named;

/** @param message replaces the documented text if that does not say what to do */
export function problem(name: Name, message?: string): NamedError {
  const [code, text] = named[name];
  return new NamedError(code, name, message ?? text);
}

/** Converts the errors of schemas and hooks, for all routes of the plugin. */
export function nameErrors(app: FastifyInstance): void {
  app.setErrorHandler((cause, request, reply) => {
    const error = asApiError(cause);
    if (error.code === 'internal_server_error') throw cause;
    // Clients of Better Auth read this header, others the usual one.
    if (error instanceof RetryLater) reply.header('x-retry-after', error.retryAfterSeconds);
    throw nameOf(error, request.method === 'GET' ? 'query' : 'body');
  });
}

function nameOf(error: ApiError, part: 'body' | 'query'): ApiError {
  if (error instanceof NamedError) return error;
  if (error instanceof FieldError) {
    const fields = Object.entries(error.details).map(([name, reason]) => `[${part}.${name}] ${reason}`);
    return new NamedError('bad_request', 'VALIDATION_ERROR', fields.join('; '), error.details);
  }
  if (error.code === 'not_authenticated') return problem('UNAUTHORIZED');
  if (error.code === 'forbidden') return problem('INVALID_ORIGIN', error.message);
  return error;
}

/**
 * Returns a hook that refuses requests of pages of other origins: they could log a visitor in as somebody else.
 * Browsers send the origin with every POST. Programs send none.
 */
export function refuseForeignOrigins(publicUrl: string) {
  const own = new URL(publicUrl).origin;
  const refuse = async ({ headers }: FastifyRequest): Promise<void> => {
    const site = headers['sec-fetch-site'];
    const isForeign = headers.origin !== undefined && headers.origin !== own;
    if (isForeign || site === 'same-site' || site === 'cross-site') throw problem('INVALID_ORIGIN');
  };
  return refusing(refuse, 'forbidden');
}

const URL_LENGTH_MAX = 2_000;
/** A path or an absolute address. Programs read backslashes, control characters and `https:path` in different ways. */
const PLAIN_URL = /^(\/|https?:\/\/)[^\\\p{Cc}]*$/u;

/**
 * Checks an address that a client sends, so that nobody can use it to send people, or a token, elsewhere.
 *
 * @returns the absolute address; null if none is given
 * @throws NamedError if it is not on our own origin, or has special characters
 */
export function ownUrl(
  given: string | undefined,
  publicUrl: string,
  name: 'INVALID_CALLBACK_URL' | 'INVALID_REDIRECT_URL',
): string | null {
  if (given === undefined || given === '') return null;
  const isPlain = given.length <= URL_LENGTH_MAX && PLAIN_URL.test(given);
  const url = isPlain && URL.canParse(given, publicUrl) ? new URL(given, publicUrl) : null;
  if (url === null || url.origin !== new URL(publicUrl).origin) throw problem(name);
  // A name before the host would look like the host.
  if (url.username !== '' || url.password !== '') throw problem(name);
  return url.href;
}
