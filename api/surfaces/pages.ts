/**
 * The remaining routes: login and accounts, pages for people, stored files, SDK scripts, health. Each route says who may
 * call it and how it is limited.
 */

import { accountRoutes } from '#api/resources/accounts/account-routes.ts';
import { loginRoutes, sessionRoutes } from '#api/resources/accounts/login-routes.ts';
import { accountPages } from '#api/resources/accounts/pages.ts';
import { healthRoutes } from '#api/resources/health/routes.ts';
import { homeRoutes } from '#api/resources/home/routes.ts';
import { scriptRoutes } from '#api/resources/scripts/routes.ts';
import { fileRoutes } from '#api/resources/storage/file-routes.ts';
import { surveyLinkRoutes } from '#api/resources/survey-links/routes.ts';
import type { Surface } from './surface.ts';

export const pages: Surface = {
  name: 'pages',
  prefixes: [],
  credentials: null,
  errorShape: 'v1',
  isCrossOrigin: false,
  limit: null,
  routes: [
    healthRoutes,
    loginRoutes,
    sessionRoutes,
    accountPages,
    accountRoutes,
    fileRoutes,
    scriptRoutes,
    surveyLinkRoutes,
    homeRoutes,
  ],
};
