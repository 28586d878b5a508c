/**
 * The management API v3, which only reads: for programs with an API key, and for people with a session. Errors are problem details (RFC
 * 9457).
 */
import { v3SurveyRoutes } from '#api/resources/surveys/v3-routes.ts';
import type { Surface } from './surface.ts';

export const v3: Surface = {
  name: 'v3',
  prefixes: ['/api/v3'],
  credentials: 'any',
  errorShape: 'v3',
  isCrossOrigin: false,
  limit: { name: 'api.v3', isCountedByGateway: () => false },
  routes: [v3SurveyRoutes],
};
