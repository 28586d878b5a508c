/**
 * The client API: for SDKs in browsers, on pages of other origins, and in apps. Anybody may call it without
 * credentials.
 */
import type { Routes } from '#api/context.ts';
import { PREFLIGHT } from '#api/http/reply-headers.ts';
import { environmentRoutes } from '#api/resources/environment/routes.ts';
import { ogRoutes } from '#api/resources/og/routes.ts';
import { clientResponseRoutes } from '#api/resources/responses/client-routes.ts';
import { displayRoutes, newDisplayRoutes } from '#api/resources/responses/display-routes.ts';
import { pinRoutes } from '#api/resources/responses/pin-routes.ts';
import { clientGrantRoutes } from '#api/resources/storage/grants.ts';
import { uploadRoutes } from '#api/resources/storage/upload-routes.ts';
import { legacyUserRoutes, userRoutes } from '#api/resources/user/routes.ts';
import type { Surface } from './surface.ts';

const prefixes = ['/api/v1/client', '/api/v2/client'];
const CACHED_PREFLIGHT = /\/(environment|displays|responses|user|storage)\/?(\?|$)/;

/**
 * Routes that the gateway limits per address, in the router's notation. A test compares the list with its policies.
 */
export const gatewayRoutes: ReadonlySet<string> = new Set([
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

/** Answers preflights of every path, even of workspaces that do not exist. */
const preflightRoutes: Routes = async (app) => {
  for (const prefix of prefixes) {
    app.options(`${prefix}/*`, { schema: { hide: true } }, async (request, reply) => {
      if (CACHED_PREFLIGHT.test(request.url)) reply.header('cache-control', PREFLIGHT);
      return { data: {} };
    });
  }
};

export const client: Surface = {
  name: 'client',
  prefixes,
  credentials: null,
  errorShape: 'v1',
  isCrossOrigin: true,
  limit: {
    name: 'api.client',
    isCountedByGateway: ({ method, route }) =>
      gatewayRoutes.has(`${method === 'HEAD' ? 'GET' : method} ${route}`),
  },
  routes: [
    preflightRoutes,
    environmentRoutes,
    userRoutes,
    legacyUserRoutes,
    newDisplayRoutes,
    displayRoutes,
    clientResponseRoutes,
    pinRoutes,
    clientGrantRoutes,
    uploadRoutes,
    ogRoutes,
  ],
};
