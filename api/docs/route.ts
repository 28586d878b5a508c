/** Adds other options of a route to its schema: credentials, bodies that it reads by hand, errors. */
import type { FastifySchema, RouteOptions } from 'fastify';
import { type DescribedSurface, refusalsOf } from './refusals.ts';

export const securitySchemes = {
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: 'An API key, `fbk_…`; `Authorization: Bearer fbk_…` is taken as well.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'next-auth.session-token',
    description: 'The session of a user who logged in (`POST /api/auth/callback/credentials`).',
  },
} as const;

/** The name of the parameter that the router writes as `*`. */
export const REST = 'fileName';

/** Notes on an operation, which document.ts reads and removes. */
export const notes = { refusals: 'x-refusals', reads: 'x-reads' } as const;

type Requirement = Readonly<Record<string, string[]>>;

export function describeRoute(
  {
    schema,
    url,
    route,
  }: {
    readonly schema: FastifySchema;
    readonly url: string;
    readonly route: RouteOptions;
  },
  surface: DescribedSurface,
): { schema: FastifySchema; url: string } {
  const method = [route.method].flat()[0] ?? 'GET';
  const { config } = route;
  const noted = {
    [notes.refusals]: [...refusalsOf({ ...route, method, url, schema }, surface)],
    [notes.reads]: config?.reads ?? null,
  };
  return {
    schema: { ...schema, security: securityOf(route, surface), ...noted },
    // OpenAPI has no wildcards, so the rest of a path is one parameter.
    url: url.replace(/\*$/, `:${REST}`),
  };
}

/** Returns the credentials of the auth plugin. An empty list means that no credentials are needed. */
function securityOf({ config }: RouteOptions, surface: DescribedSurface): Requirement[] {
  const credentials = config?.credentials === undefined ? surface.credentials : config.credentials;
  switch (credentials) {
    case null:
      return [];
    case 'key':
      return [{ apiKey: [] }];
    case 'session':
      return [{ session: [] }];
    case 'any':
      return [{ apiKey: [] }, { session: [] }];
  }
}
