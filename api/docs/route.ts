/** What a route's own options tell the description: whether it is shown, and which credentials it takes. */
import type { FastifySchema, RouteOptions } from 'fastify';
import type { Credentials } from '#api/auth/plugin.ts';
import type { ReplyRules } from '#api/http/reply-headers.ts';

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

/** What the description needs to know about the surface of a path. */
export interface DocumentedSurface extends ReplyRules {
  readonly name: string;
  readonly credentials: Credentials | null;
}

export type FindSurface = (path: string) => DocumentedSurface;

type Requirement = Readonly<Record<string, string[]>>;

export function describeRoute(
  {
    schema,
    url,
    route,
  }: { readonly schema: FastifySchema; readonly url: string; readonly route: RouteOptions },
  findSurface: FindSurface,
): { schema: FastifySchema; url: string } {
  // OpenAPI has no wildcards: the rest of a path is one parameter.
  return {
    schema: { ...schema, security: securityOf(url, route, findSurface) },
    url: url.replace(/\*$/, `:${REST}`),
  };
}

/** As the auth plugin decides it. An empty list says: everybody. */
function securityOf(url: string, { config }: RouteOptions, findSurface: FindSurface): Requirement[] {
  const credentials = config?.credentials === undefined ? findSurface(url).credentials : config.credentials;
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
