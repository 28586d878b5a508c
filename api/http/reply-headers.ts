/** Headers of every reply, including errors. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorShape } from './envelopes.ts';

const PRIVATE = 'private, no-store';
/** Browsers may cache the preflight of a collection for an hour. */
export const PREFLIGHT = 'public, s-maxage=3600, max-age=3600';

const security: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'SAMEORIGIN',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'strict-transport-security': 'max-age=63072000; includeSubDomains',
  'permissions-policy': 'camera=(), microphone=(), geolocation=()',
  // The API sends data, so nothing in a reply may run or be framed.
  'content-security-policy': "default-src 'none'; frame-ancestors 'self'",
};

const crossOrigin: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
  'access-control-allow-headers':
    'Content-Type, Authorization, Cache-Control, X-CSRF-Token, X-Requested-With, Accept, Accept-Version, Content-Length, Content-MD5, Date, X-Api-Version, x-api-key',
  'access-control-allow-credentials': 'true',
};

export interface ReplyRules {
  readonly errorShape: ErrorShape;
  /** Whether pages of other origins call the surface. Then every reply has CORS headers. */
  readonly isCrossOrigin: boolean;
}

/** Finds the rules for a request target: a path, possibly with a query, possibly malformed. */
export type FindReplyRules = (target: string) => ReplyRules;

/** Runs before all other steps, and again for errors. Running it twice changes nothing. */
export function setReplyHeaders(request: FastifyRequest, reply: FastifyReply, rules: ReplyRules): void {
  reply.headers(security).header('cache-control', PRIVATE);
  if (rules.isCrossOrigin) reply.headers(crossOrigin);
  if (rules.errorShape === 'v3') reply.header('x-request-id', request.id);
}

/** Returns the pattern of the route, or the target if no route matches. */
export function matchedPath(request: FastifyRequest): string {
  return request.routeOptions.url ?? request.url;
}
