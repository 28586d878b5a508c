/** Builds the description, OpenAPI 3.1, from the schemas that validate and serialise, so it always fits the routes. */
import type { FastifySchema, RouteOptions } from 'fastify';
import type { TSchema } from 'typebox';
import type { Credentials } from '#api/auth/plugin.ts';
import type { ErrorShape } from '#api/http/envelopes.ts';
import { isRecord } from '#api/values/schemas.ts';
import { namedSchemas, nameOf } from './components.ts';
import { errorReplies } from './error-bodies.ts';

declare module 'fastify' {
  interface FastifySchema {
    readonly summary?: string;
    /** Leaves the route out, because it is no operation for programs. */
    readonly hide?: boolean;
  }
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

const securitySchemes = {
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
};

/** One of these is enough. An empty list means that no credentials are needed. */
const security: Readonly<Record<Credentials, readonly object[]>> = {
  key: [{ apiKey: [] }],
  session: [{ session: [] }],
  any: [{ apiKey: [] }, { session: [] }],
};

/** @param routes all routes of the API, as they were added */
export function describeRoutes(
  publicUrl: string,
  routes: readonly RouteOptions[],
  findSurface: (path: string) => DescribedSurface,
): string {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    // HEAD belongs to GET, and OPTIONS are preflights: neither is an operation of its own.
    const methods = [route.method].flat().filter((method) => method !== 'HEAD' && method !== 'OPTIONS');
    if (route.schema?.hide === true || methods.length === 0) continue;
    const path = pathOf(route.url);
    const operations = paths[path] ?? {};
    paths[path] = operations;
    for (const method of methods)
      operations[method.toLowerCase()] = operationOf(method, route, findSurface(route.url));
  }
  const document = {
    openapi: '3.1.0',
    info,
    servers: [{ url: publicUrl }],
    paths,
    components: { securitySchemes, responses: errorReplies, schemas: namedSchemas },
  };
  return JSON.stringify(document, withReferences);
}

const info = {
  title: 'Floodgate API',
  version: '1.0.0',
  description: [
    'Surveys and feedback: the client API for SDKs, which asks for no key, and the management API.',
    'Replies of v1 wrap their payload in `data`. Ids are opaque; timestamps are ISO 8601 in UTC.',
    'Limits: the gateway answers 429 with `x-gateway-ratelimited` as `application/problem+json`, the application as `application/json`. The gateway also answers 400, 408, 429, 431, 502, 503 and 504 to any request, as GatewayProblem.',
  ].join('\n\n'),
};

/** Replaces named schemas by references, and leaves out `text` and `initially`, which only our code knows. */
function withReferences(this: unknown, key: string, value: unknown): unknown {
  if (key === 'initially' || (key === 'text' && typeof value === 'string')) return undefined;
  const name = this === namedSchemas ? undefined : nameOf.get(value);
  return name === undefined ? value : { $ref: `#/components/schemas/${name}` };
}

/** OpenAPI has no wildcards, so the rest of a path is one parameter. */
function pathOf(url: string): string {
  return url.replace(/\*$/, ':fileName').replaceAll(/:(\w+)/g, '{$1}');
}

function operationOf(method: string, { url, schema = {}, config }: RouteOptions, surface: DescribedSurface) {
  const credentials = config?.credentials === undefined ? surface.credentials : config.credentials;
  const reads = config?.reads ?? (isRecord(schema.body) ? { 'application/json': schema.body } : {});
  const content = Object.entries(reads).map(([type, body]) => [type, { schema: body }]);
  return {
    // `getV1ManagementSurveysBySurveyId`
    operationId: [
      method.toLowerCase(),
      ...pathOf(url).replace('/api/', '/').replaceAll('{', 'By-').split(/\W+/),
    ]
      .map((word, index) => (index === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1)))
      .join(''),
    summary: schema.summary,
    tags: [surface.name],
    security: credentials === null ? [] : security[credentials],
    parameters: parametersOf(url, schema),
    ...(content.length === 0
      ? {}
      : { requestBody: { required: true, content: Object.fromEntries(content) } }),
    responses: {
      ...responsesOf(schema.response, surface.errorShape),
      default: { $ref: `#/components/responses/${surface.errorShape}` },
    },
  };
}

function parametersOf(url: string, { params, querystring }: FastifySchema): readonly object[] {
  const inPath = propertiesOf(params);
  const required = isRecord(querystring) && Array.isArray(querystring.required) ? querystring.required : [];
  return [
    ...[...pathOf(url).matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
      name,
      in: 'path',
      required: true,
      schema: inPath[name] ?? { type: 'string' },
    })),
    ...Object.entries(propertiesOf(querystring)).map(([name, schema]) => ({
      name,
      in: 'query',
      required: required.includes(name),
      schema,
    })),
  ];
}

function propertiesOf(schema: unknown): Readonly<Record<string, unknown>> {
  return isRecord(schema) && isRecord(schema.properties) ? schema.properties : {};
}

/** If a route and its surface have different bodies with one status, the description shows both. */
function responsesOf(response: unknown, shape: ErrorShape): object {
  const replies = Object.entries(isRecord(response) ? response : {});
  return Object.fromEntries(
    replies.map(([status, schema]) => [status, responseOf(Number(status), schema, shape)]),
  );
}

function responseOf(status: number, schema: unknown, shape: ErrorShape): object {
  const { description = 'Done.', type, content } = isRecord(schema) ? schema : {};
  // http/media.ts has the schemas of replies that are not JSON.
  if (type === 'null') return { description };
  const own = isRecord(content) ? content : { 'application/json': { schema } };
  if (status < 400) return { description, content: own };
  const error = errorReplies[shape].content;
  const anyOf = [error, own].flatMap(({ 'application/json': json }) => (isRecord(json) ? [json.schema] : []));
  return { description, content: { ...error, ...own, 'application/json': { schema: { anyOf } } } };
}
