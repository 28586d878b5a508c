/**
 * Authenticates every request before any other check. On surfaces that require credentials, a request without valid
 * ones is refused here: before its body is read, and also if its path does not exist.
 *
 * If a request has a key header, its session is ignored. A session counts only if a page of another site cannot have
 * sent its cookie.
 *
 * A body may take minutes to arrive. After a slow body the credentials are checked again, so that withdrawn ones stop
 * working.
 */
import fastifyCookie from '@fastify/cookie';
import type { FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { Database } from '#api/db/schema.ts';
import { type ApiError, forbidden, notAuthenticated, unauthorized } from '#api/errors.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { createUseRecorder, findApiKey, presentedKey } from './api-key.ts';
import { sessionCookie } from './cookies.ts';
import { hasLess, may, type Principal, type Right, rightOf, type SessionPrincipal } from './principal.ts';
import { authenticateSession } from './session.ts';

/** Credentials are checked again after a body that took longer than this. */
const SLOW_BODY: Millis = 1_000;

/** Credentials that a route accepts. */
export type Credentials = 'key' | 'session' | 'any';

/** `config` of a route for logged-in people, not for API keys. */
export const forPeople = { credentials: 'session', needsNoWorkspace: true } as const;

declare module 'fastify' {
  interface FastifyInstance {
    /** Checks credentials on routes where they are optional, such as those for files. */
    authenticate: Authenticate;
  }
  interface FastifyRequest {
    /** The caller; null on routes that require no credentials. */
    principal: Principal | null;
  }
  interface FastifyContextConfig {
    /** Whether the route serves callers without access to a workspace. Other routes refuse them. */
    readonly needsNoWorkspace?: boolean;
    /** The credentials that this route accepts; null if none are required. Default: those of its surface. */
    readonly credentials?: Credentials | null;
    /** Whether the route checks the token of its form. Our pages tell browsers to send no origin with forms. */
    readonly isForm?: boolean;
  }
}

/**
 * Checks the credentials of a request.
 *
 * @returns null without valid credentials
 * @throws ApiError forbidden if a page of another origin uses a session
 */
type Authenticate = (request: FastifyRequest, accepted: Credentials) => Promise<Principal | null>;

interface AuthOptions {
  readonly db: Database;
  readonly clock: Clock;
  /** Origin whose pages may use a session. */
  readonly publicUrl: string;
  /** @param target the router's pattern, or the target where no route matches */
  readonly findSurface: (target: string) => {
    readonly credentials: Credentials | null;
    /** The format of errors. On v3 a missing right is 403. */
    readonly errorShape: 'v1' | 'v2' | 'v3';
  };
}

export const authPlugin = fastifyPlugin<AuthOptions>(
  async (app, { db, clock, publicUrl, findSurface }) => {
    await app.register(fastifyCookie);
    const recordUse = createUseRecorder(db, clock);
    const askedAt = new WeakMap<FastifyRequest, Millis>();

    const authenticate: Authenticate = async (request, accepted) => {
      const key = accepted === 'session' ? null : presentedKey(request.headers);
      if (key !== null) {
        const found = await findApiKey(db, key);
        if (found !== null) recordUse(found);
        return found?.principal ?? null;
      }
      const token = accepted === 'key' ? null : sessionCookie(request.cookies);
      if (token === null) return null;
      refuseForeignPages(request, publicUrl);
      return authenticateSession(db, token, clock);
    };

    app.decorate('authenticate', authenticate);
    app.decorateRequest('principal', null);
    app.addHook('onRequest', async (request) => {
      const accepted = acceptedBy(request);
      if (accepted === null) return;
      askedAt.set(request, clock());
      const principal = await authenticate(request, accepted);
      if (principal === null) throw notAuthenticated();
      const reachesNothing = principal.permissions.size === 0;
      if (reachesNothing && request.routeOptions.config?.needsNoWorkspace !== true) {
        if (principal.kind === 'apiKey') throw notAuthenticated();
        // A person without any permission in a workspace.
        throw withoutRight(request);
      }
      request.principal = principal;
    });
    app.addHook('preValidation', async (request) => {
      const { body, principal } = request;
      if (principal === null || body === undefined) return;
      if (clock() - (askedAt.get(request) ?? 0) < SLOW_BODY) return;
      const now = await authenticate(request, acceptedBy(request) ?? 'any');
      if (now === null) throw notAuthenticated();
      if (hasLess(now, principal)) throw withoutRight(request);
      request.principal = now;
    });

    function acceptedBy(request: FastifyRequest): Credentials | null {
      const { config } = request.routeOptions;
      return config?.credentials === undefined ? surfaceOf(request).credentials : config.credentials;
    }

    function withoutRight(request: FastifyRequest): ApiError {
      const refused = unauthorized();
      return surfaceOf(request).errorShape === 'v3' ? forbidden(refused.message) : refused;
    }

    function surfaceOf(request: FastifyRequest): ReturnType<AuthOptions['findSurface']> {
      return findSurface(request.routeOptions.url ?? request.url);
    }
  },
  { name: 'auth', dependencies: ['http'] },
);

/**
 * Refuses requests of pages of other origins. SameSite=Lax keeps the cookie from other sites, but not from other
 * origins of the same site, such as another subdomain. Browsers send the origin with every request that may change
 * something. Programs send none.
 */
function refuseForeignPages(request: FastifyRequest, publicUrl: string): void {
  if (rightOf(request.method) === 'read' || request.routeOptions.config?.isForm === true) return;
  const { origin } = request.headers;
  if (origin !== undefined && origin !== new URL(publicUrl).origin) {
    throw forbidden(
      'A page of another origin may not use this session; call from PUBLIC_URL, or with an API key',
    );
  }
}

/** @throws ApiError not_authenticated, which cannot happen on a route that requires credentials */
export function principalOf(request: FastifyRequest): Principal {
  if (request.principal === null) throw notAuthenticated();
  return request.principal;
}

/** Returns the ids of the workspaces that the caller may read. */
export function readableWorkspaces(request: FastifyRequest): readonly string[] {
  const principal = principalOf(request);
  return [...principal.permissions.keys()].filter((id) => may(principal, id, 'read'));
}

/** Returns the session on routes with `credentials: 'session'`. @throws ApiError not_authenticated for a key */
export function sessionOf(request: FastifyRequest): SessionPrincipal {
  const principal = principalOf(request);
  if (principal.kind !== 'session') throw notAuthenticated();
  return principal;
}

/**
 * @param right default: the right that the method needs
 * @throws ApiError unauthorized
 */
export function requireRight(
  request: FastifyRequest,
  workspaceId: string,
  right: Right = rightOf(request.method),
): void {
  if (!may(principalOf(request), workspaceId, right)) throw unauthorized();
}
