/** The management API v2: for programs with an API key. Sessions are ignored. */
import { v2AttributeKeyRoutes } from '#api/resources/contacts/key-routes.ts';
import { v2ContactRoutes } from '#api/resources/contacts/routes.ts';
import { v2HealthRoutes } from '#api/resources/health/routes.ts';
import { v2MeRoutes } from '#api/resources/me/routes.ts';
import { v2ResponseRoutes } from '#api/resources/responses/management-routes.ts';
import { v2WebhookRoutes } from '#api/resources/webhooks/routes.ts';
import type { Surface } from './surface.ts';

export const v2: Surface = {
  name: 'v2',
  prefixes: ['/api/v2'],
  credentials: 'key',
  errorShape: 'v2',
  isCrossOrigin: false,
  limit: { name: 'api.v2', isCountedByGateway: () => false },
  routes: [
    v2HealthRoutes,
    v2MeRoutes,
    v2ResponseRoutes,
    v2WebhookRoutes,
    v2AttributeKeyRoutes,
    v2ContactRoutes,
  ],
};
