/** The management API v1: for programs with an API key, and for people with a session. */

import { actionClassRoutes } from '#api/resources/action-classes/routes.ts';
import { attributeClassRoutes, contactAttributeKeyRoutes } from '#api/resources/contacts/key-routes.ts';
import { contactRoutes } from '#api/resources/contacts/routes.ts';
import { integrationRoutes } from '#api/resources/integrations/routes.ts';
import { languageRoutes } from '#api/resources/languages/routes.ts';
import { licenseRoutes } from '#api/resources/license/routes.ts';
import { linkEmailRoutes } from '#api/resources/link-emails/routes.ts';
import { meRoutes } from '#api/resources/me/routes.ts';
import { workspaceRoutes } from '#api/resources/organizations/workspace-routes.ts';
import { managementResponseRoutes } from '#api/resources/responses/management-routes.ts';
import { segmentRoutes } from '#api/resources/segments/routes.ts';
import { managementGrantRoutes } from '#api/resources/storage/grants.ts';
import { surveyRoutes } from '#api/resources/surveys/routes.ts';
import { webhookRoutes } from '#api/resources/webhooks/routes.ts';
import type { Surface } from './surface.ts';

/** The prefixes that the gateway limits per API key. A test compares the list with its policies. */
export const gatewayPrefixes: readonly string[] = ['/api/v1/management', '/api/v1/webhooks'];

export const management: Surface = {
  name: 'management',
  prefixes: [
    '/api/v1/management',
    '/api/v1/webhooks',
    '/api/v1/me',
    '/api/v1/surveys',
    '/api/v1/responses',
    '/api/v1/integrations',
    '/api/v1/license',
    '/api/v1/organizations',
  ],
  credentials: 'any',
  errorShape: 'v1',
  isCrossOrigin: false,
  limit: {
    name: 'api.v1',
    // The gateway does not count sessions.
    isCountedByGateway: ({ route, principal }) =>
      principal?.kind === 'apiKey' &&
      gatewayPrefixes.some((prefix) => route === prefix || route.startsWith(`${prefix}/`)),
  },
  routes: [
    meRoutes,
    surveyRoutes,
    linkEmailRoutes,
    managementResponseRoutes,
    actionClassRoutes,
    segmentRoutes,
    languageRoutes,
    contactRoutes,
    contactAttributeKeyRoutes,
    attributeClassRoutes,
    managementGrantRoutes,
    webhookRoutes,
    integrationRoutes,
    workspaceRoutes,
    licenseRoutes,
  ],
};
