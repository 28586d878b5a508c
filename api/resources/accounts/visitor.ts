/** Finds the person who opens a page of the account, or sends one of its forms. */
import type { FastifyRequest } from 'fastify';
import { sessionCookie } from '#api/auth/cookies.ts';
import type { SessionPrincipal } from '#api/auth/principal.ts';
import { authenticateSession } from '#api/auth/session.ts';
import type { Context } from '#api/context.ts';
import { forbidden, notAuthenticated, tooManyRequests } from '#api/errors.ts';
import { isFormOurs } from './protection.ts';

/**
 * Counts the request for the limit of the management API for sessions.
 *
 * @returns null without a session
 * @throws ApiError too_many_requests
 */
export async function visitorOf(
  { db, clock, limits }: Pick<Context, 'db' | 'clock' | 'limits'>,
  request: FastifyRequest,
): Promise<SessionPrincipal | null> {
  const token = sessionCookie(request.cookies);
  const principal = token === null ? null : await authenticateSession(db, token, clock);
  if (principal === null) return null;
  // The audit log names the caller of a refused change.
  request.principal = principal;
  const outcome = await limits.consume('api.v1', `user:${principal.userId}`);
  if (!outcome.isAllowed) throw tooManyRequests(outcome.retryAfterSeconds);
  return principal;
}

/** @throws ApiError not_authenticated; forbidden when the form is not ours */
export async function senderOf(
  context: Pick<Context, 'db' | 'clock' | 'limits' | 'signer'>,
  request: FastifyRequest,
): Promise<SessionPrincipal> {
  if (!isFormOurs(request, context.signer)) {
    throw forbidden('The form was too old. Go back to your account and try again.');
  }
  const principal = await visitorOf(context, request);
  if (principal === null) throw notAuthenticated();
  return principal;
}
