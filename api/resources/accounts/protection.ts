/** Protects forms against requests from other sites: adds a token, and checks it when the form comes back. */
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
 * A page on another subdomain can set a cookie and token that it got from us, and log a visitor in as itself.
 * Browsers report that in `sec-fetch-site`. They send no useful Origin here, because our pages set no-referrer.
 */
export function isFormOurs(request: FastifyRequest, signer: Signer): boolean {
  const site = request.headers['sec-fetch-site'];
  if (site === 'same-site' || site === 'cross-site') return false;
  return isCsrfTokenValid(request.cookies, fieldOf(request.body, 'csrfToken'), signer);
}
