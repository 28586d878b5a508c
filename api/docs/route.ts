/** Adds to the schema of a route what its other options tell: texts, credentials, bodies that it reads by hand. */
import type { FastifySchema, RouteOptions } from 'fastify';
import type { TSchema } from 'typebox';
import type { Credentials } from '#api/auth/plugin.ts';
import type { ErrorShape } from '#api/http/envelopes.ts';
import { isRecord } from '#api/values/schemas.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The shape of the body by media type, if the route reads it without `schema.body`. */
    readonly reads?: Readonly<Record<string, TSchema>>;
  }
}

/** The parts of a surface that concern its routes, see `Surface`. */
export interface DescribedSurface {
  readonly name: string;
  readonly credentials: Credentials | null;
  readonly errorShape: ErrorShape;
}

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
const REST = 'fileName';

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
  const reads = Object.entries(route.config?.reads ?? {});
  return {
    schema: {
      ...schema,
      ...(reads[0] === undefined ? {} : { body: reads[0][1], consumes: reads.map(([type]) => type) }),
      ...(schema?.params === undefined ? {} : { params: withoutWildcard(schema.params) }),
      operationId: operationIdOf(method, url),
      summary: schema?.summary ?? summaryOf(method, url),
      tags: [surface.name],
      security: securityOf(route, surface),
    },
    // OpenAPI has no wildcards, so the rest of a path is one parameter.
    url: url.replace(/\*$/, `:${REST}`),
  };
}

function withoutWildcard(params: unknown): unknown {
  if (!isRecord(params) || !isRecord(params.properties)) return params;
  const named = (name: string): string => (name === '*' ? REST : name);
  const { required } = params;
  return {
    ...params,
    properties: Object.fromEntries(
      Object.entries(params.properties).map(([name, one]) => [named(name), one]),
    ),
    ...(Array.isArray(required) ? { required: required.map(named) } : {}),
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

/** Turns `GET /api/v1/management/surveys/:surveyId` into `getV1ManagementSurveysBySurveyId`. */
function operationIdOf(method: string, url: string): string {
  const words = url
    .replace(/^\/api\//, '/')
    .replace(/\*$/, `:${REST}`)
    .replaceAll(':', 'By-')
    .split(/[^A-Za-z0-9]+/);
  return method.toLowerCase() + words.map(capitalized).join('');
}

const verbs: Readonly<Record<string, string>> = { POST: 'Create', PUT: 'Change', DELETE: 'Delete' };

/** Returns a text for a route of the usual shape, such as `Read a survey`. Other routes have one in their schema. */
function summaryOf(method: string, url: string): string {
  const parts = url.split('/').filter((part) => part !== '');
  const isOne = parts.at(-1)?.startsWith(':') === true || method === 'POST';
  const named = (parts.findLast((part) => !part.startsWith(':')) ?? '').replaceAll('-', ' ');
  const verb = verbs[method] ?? (isOne ? 'Read' : 'List');
  return `${verb} ${isOne ? article(singular(named)) : named}`;
}

function singular(words: string): string {
  if (words.endsWith('people')) return words.replace(/people$/, 'person');
  return words.endsWith('sses') ? words.slice(0, -2) : words.replace(/s$/, '');
}

function article(words: string): string {
  return `${/^[aeio]/.test(words) ? 'an' : 'a'} ${words}`;
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
