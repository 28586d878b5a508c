/** Headers on every reply, refusals included (contract README §2, client-api.md §1). */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { familyOf } from '#api/surfaces/surface.ts';

export const PRIVATE = 'private, no-store';
/** What a preflight of a collection allows: an hour without asking again. */
export const PREFLIGHT = 'public, s-maxage=3600, max-age=3600';

const security: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'SAMEORIGIN',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'strict-transport-security': 'max-age=63072000; includeSubDomains',
  'permissions-policy': 'camera=(), microphone=(), geolocation=()',
  // The API sends data, never a page: nothing in a reply may run or be framed.
  'content-security-policy': "default-src 'none'; frame-ancestors 'self'",
};

const crossOrigin: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
  'access-control-allow-headers':
    'Content-Type, Authorization, Cache-Control, X-CSRF-Token, X-Requested-With, Accept, Accept-Version, Content-Length, Content-MD5, Date, X-Api-Version, x-api-key',
  'access-control-allow-credentials': 'true',
};

/** Called before anything else happens to a request, and again for errors: calling it twice changes nothing. */
export function setReplyHeaders(request: FastifyRequest, reply: FastifyReply): void {
  const family = familyOf(request.routeOptions.url ?? request.url);
  reply.headers(security).header('cache-control', PRIVATE);
  if (family.isCrossOrigin) reply.headers(crossOrigin);
  if (family.name === 'v3') reply.header('x-request-id', request.id);
}
