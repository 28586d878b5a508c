/** What a route's own options tell the description: whether it is shown, and which credentials it takes. */
import type { FastifySchema, RouteOptions } from 'fastify';
import { familyOf } from '#api/surfaces/surface.ts';

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

/** How a path's rest is called where the router writes `*`. */
export const REST = 'fileName';

type Requirement = Readonly<Record<string, string[]>>;

export function describeRoute({
  schema,
  url,
  route,
}: {
  readonly schema: FastifySchema;
  readonly url: string;
  readonly route: RouteOptions;
}): { schema: FastifySchema; url: string } {
  // OpenAPI has no wildcards: the rest of a path is one parameter.
  return { schema: { ...schema, security: securityOf(url, route) }, url: url.replace(/\*$/, `:${REST}`) };
}

/** As the auth plugin decides it. An empty list says: everybody. */
function securityOf(url: string, { config }: RouteOptions): Requirement[] {
  const family = familyOf(url);
  const familyTakes = family.name === 'v2' ? 'key' : 'any';
  const credentials = config?.credentials ?? (family.isAuthenticated ? familyTakes : null);
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
