/** Headers on every reply, errors included. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorShape } from './envelopes.ts';

const PRIVATE = 'private, no-store';
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

/** How the replies of a surface look, whatever they say. */
export interface ReplyRules {
  readonly errorShape: ErrorShape;
  /** Called by browsers on other people's pages: CORS headers on every reply. */
  readonly isCrossOrigin: boolean;
  /** Every reply carries the request's id as `x-request-id`. */
  readonly showsRequestId: boolean;
}

/** Finds the rules of a request target: a path, perhaps with a query; it may be malformed. */
export type FindReplyRules = (target: string) => ReplyRules;

/** Called before anything else happens to a request, and again for errors: calling it twice changes nothing. */
export function setReplyHeaders(request: FastifyRequest, reply: FastifyReply, rules: ReplyRules): void {
  reply.headers(security).header('cache-control', PRIVATE);
  if (rules.isCrossOrigin) reply.headers(crossOrigin);
  if (rules.showsRequestId) reply.header('x-request-id', request.id);
}

/** What the request is answered by: the router's pattern, or the target where no route matches. */
export function matchedPath(request: FastifyRequest): string {
  return request.routeOptions.url ?? request.url;
}
