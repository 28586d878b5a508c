/**
 * Who is calling, before anything else is looked at. On the families that ask for a key, a request without a valid one
 * ends here: before its body is read, and also where the path leads nowhere.
 */
import type { FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { Context } from '#api/context.ts';
import { notAuthenticated, unauthorized } from '#api/errors.ts';
import { familyOf } from '#api/families.ts';
import { authenticateApiKey, presentedKey } from './api-key.ts';
import { may, type Principal, type Right, rightOf } from './principal.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** null on routes that ask for no credentials. */
    principal: Principal | null;
  }
  interface FastifyContextConfig {
    /** A key that reaches no workspace counts as no key (contract auth.md §3), except where a route says otherwise. */
    readonly acceptsKeyWithoutWorkspace?: boolean;
  }
}

export const authPlugin = fastifyPlugin<{ readonly context: Context }>(
  async (app, { context }) => {
    app.decorateRequest('principal', null);
    app.addHook('onRequest', async (request) => {
      if (!familyOf(request.routeOptions.url ?? request.url).isAuthenticated) return;
      const key = presentedKey(request.headers);
      const principal = key === null ? null : await authenticateApiKey(context.db, key, context.clock);
      if (principal === null) throw notAuthenticated();
      const reachesNothing = principal.permissions.size === 0;
      if (reachesNothing && request.routeOptions.config?.acceptsKeyWithoutWorkspace !== true) {
        throw notAuthenticated();
      }
      request.principal = principal;
    });
  },
  { name: 'auth', dependencies: ['replies'] },
);

/** @throws ApiError not_authenticated, which on a route of an authenticated family cannot happen */
export function principalOf(request: FastifyRequest): Principal {
  if (request.principal === null) throw notAuthenticated();
  return request.principal;
}

/**
 * @param right what the operation needs; by default what its method stands for
 * @throws ApiError unauthorized
 */
export function requireRight(
  request: FastifyRequest,
  workspaceId: string,
  right: Right = rightOf(request.method),
): void {
  if (!may(principalOf(request), workspaceId, right)) throw unauthorized();
}
