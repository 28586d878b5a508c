/** The proof that a form is ours, on its way out and on its way back. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { setCsrfCookie } from '#api/auth/cookies.ts';
import { csrfToken, isCsrfTokenValid } from '#api/auth/csrf.ts';
import type { Signer } from '#api/auth/signer.ts';
import type { Context } from '#api/context.ts';
import { hidden } from '#api/http/page-form.ts';
import { fieldOf } from './form.ts';

/** Sets the cookie of a form. @returns the hidden field that belongs to it */
export function protect(
  { signer, random, config }: Pick<Context, 'signer' | 'random' | 'config'>,
  request: FastifyRequest,
  reply: FastifyReply,
): string {
  const { token, cookie } = csrfToken(request.cookies, signer, random);
  setCsrfCookie(reply, cookie, config.publicUrl);
  return hidden('csrfToken', token);
}

/**
 * A neighbour's subdomain can plant a pair of cookie and token that we once gave it, and log somebody in as itself.
 * Browsers say so; they send no useful Origin here, because our pages keep their address from everybody.
 */
export function isFormOurs(request: FastifyRequest, signer: Signer): boolean {
  const site = request.headers['sec-fetch-site'];
  if (site === 'same-site' || site === 'cross-site') return false;
  return isCsrfTokenValid(request.cookies, fieldOf(request.body, 'csrfToken'), signer);
}
