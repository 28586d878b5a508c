/**
 * Which of the thirteen limits a route falls under, and which routes the edge gateway covers, so that the application
 * does not limit them a second time (SPEC.md §8). A test holds the lists to the edge table.
 */
import type { Principal } from '#api/auth/principal.ts';
import type { Family } from '#api/surfaces/surface.ts';
import type { LimitName } from './table.ts';

/** Client routes of the edge table, as our router writes them. Whatever is missing here falls under `api.client`. */
export const edgeClientRoutes: ReadonlySet<string> = new Set([
  'GET /api/v1/client/:workspaceId/environment',
  'POST /api/v1/client/:workspaceId/responses',
  'PUT /api/v1/client/:workspaceId/responses/:responseId',
  'POST /api/v1/client/:workspaceId/displays',
  'POST /api/v1/client/:workspaceId/user',
  'POST /api/v1/client/:workspaceId/storage',
  'POST /api/v2/client/:workspaceId/responses',
  'PUT /api/v2/client/:workspaceId/responses/:responseId',
  'POST /api/v2/client/:workspaceId/displays',
  'POST /api/v2/client/:workspaceId/storage',
]);

/** What the edge limits per API key, together with everything below it. */
export const edgeKeyPrefixes: readonly string[] = ['/api/v1/management', '/api/v1/webhooks'];

/**
 * The limit of a route that names none in its options.
 *
 * @param route the router's pattern; the request's path where no route matches
 * @returns null when the edge covers it, or SPEC.md gives it no limit
 */
export function defaultLimit(
  family: Family,
  method: string,
  route: string,
  principal: Principal | null,
): LimitName | null {
  switch (family.name) {
    case 'management-v1': {
      // Calls with a key are the edge's, except on the few routes that it does not know, such as /api/v1/me.
      const isAtEdge = edgeKeyPrefixes.some((prefix) => route === prefix || route.startsWith(`${prefix}/`));
      return principal?.kind === 'apiKey' && isAtEdge ? null : 'api.v1';
    }
    case 'client-v1':
    case 'client-v2':
      return edgeClientRoutes.has(`${method === 'HEAD' ? 'GET' : method} ${route}`) ? null : 'api.client';
    case 'v2':
      return family.isAuthenticated ? 'api.v2' : null;
    case 'v3':
      return 'api.v3';
    case 'other':
      return null;
  }
}
