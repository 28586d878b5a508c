/**
 * Builds the description with @fastify/swagger, and adds texts, errors and names. It is loaded for its first reader, so
 * that a start does not wait for it, and works in slices, so that nobody else waits for long.
 */
import { setImmediate as otherWork } from 'node:timers/promises';
import fastifySwagger from '@fastify/swagger';
import fastify, { type RouteOptions } from 'fastify';
import type { Code } from '#api/errors.ts';
import type { ErrorShape } from '#api/http/envelopes.ts';
import { isRecord } from '#api/values/schemas.ts';
import { namedShapes } from './components.ts';
import { errorComponents, errorResponsesOf } from './error-responses.ts';
import { createNamer, type Namer } from './named-schemas.ts';
import { namesOf } from './operation-names.ts';
import type { DescribedSurface } from './refusals.ts';
import { describeRoute, notes, REST, securitySchemes } from './route.ts';

type Part = Record<string, unknown>;
type FindSurface = (path: string) => DescribedSurface;
type Errors = ReturnType<typeof errorComponents>;

/** The number of routes that are described together. Between them the process does other work. */
const SLICE = 10;

/** @param routes all routes of the API, as they were added */
export async function describeRoutes(
  publicUrl: string,
  routes: readonly RouteOptions[],
  findSurface: FindSurface,
): Promise<object> {
  const parts = createParts(findSurface);
  for (const slice of slicesOf(routes)) {
    parts.add(await describeSlice(slice, findSurface));
    await otherWork();
  }
  return { ...documentOf(publicUrl), ...parts.all() };
}

/** Divides the routes. Those of one path stay together, because the document joins them. */
function slicesOf(routes: readonly RouteOptions[]): readonly (readonly RouteOptions[])[] {
  const slices: RouteOptions[][] = [[]];
  for (const samePath of Map.groupBy(routes, ({ url }) => url).values()) {
    if ((slices.at(-1)?.length ?? 0) + samePath.length > SLICE) slices.push([]);
    slices.at(-1)?.push(...samePath);
  }
  return slices;
}

/**
 * Adds the routes to an application that gets no requests, because @fastify/swagger reads routes when they are added.
 *
 * @returns the paths with their parameters, bodies and successes
 */
async function describeSlice(routes: readonly RouteOptions[], findSurface: FindSurface): Promise<Part> {
  const app = fastify({ exposeHeadRoutes: false });
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => () => '');
  await app.register(fastifySwagger, {
    openapi: { openapi: '3.1.0', components: { securitySchemes } },
    stripBasePath: false,
    transform: (described) => describeRoute(described, findSurface(described.url)),
  });
  for (const route of routes) app.route({ ...route, exposeHeadRoute: false });
  await app.ready();
  const paths = recordAt({ ...app.swagger() }, 'paths');
  await app.close();
  return paths;
}

function documentOf(publicUrl: string) {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Floodgate API',
      version: '1.0.0',
      description: [
        'Surveys and feedback: the client API for SDKs, which asks for no key, and the management API.',
        'Replies of v1 wrap their payload in `data`. Ids are opaque; timestamps are ISO 8601 in UTC.',
        'Wherever a workspace id is expected, an environment id of older clients works too.',
        'Limits: the gateway answers 429 with `x-gateway-ratelimited` as `application/problem+json`, the application as `application/json`. The gateway also answers 400, 408, 429, 431, 502, 503 and 504 to any request, as GatewayProblem.',
        'A method that a path does not have is answered 405, a path that leads nowhere 404, in the shape of the surface.',
      ].join('\n\n'),
    },
    servers: [{ url: publicUrl }],
  };
}

/** Collects the finished operations, and what they share. */
function createParts(findSurface: FindSurface) {
  const namer = createNamer(namedShapes);
  const errors = errorComponents();
  const paths: [string, Part][] = [];
  const tags = new Set<string>();
  return {
    add(built: Part): void {
      for (const [path, item] of Object.entries(built)) {
        const operations = operationsOf(item).map(([method, operation]) => {
          const done = operationOf(method.toUpperCase(), path, isRecord(operation) ? operation : {}, {
            errors,
            namer,
            errorShape: findSurface(path).errorShape,
          });
          tags.add(done.tags[0]);
          return [method, done];
        });
        paths.push([path, Object.fromEntries(operations)]);
      }
    },
    all: (): Part => ({
      tags: [...tags].sort().map((name) => ({ name })),
      paths: Object.fromEntries(paths),
      components: { securitySchemes, responses: errors, schemas: namer.components() },
    }),
  };
}

function operationsOf(item: unknown): readonly [string, unknown][] {
  return Object.entries(isRecord(item) ? item : {}).filter(
    ([method]) => method !== 'head' && method !== 'options',
  );
}

function operationOf(
  method: string,
  path: string,
  built: Part,
  {
    errors: shared,
    namer,
    errorShape,
  }: { readonly errors: Errors; readonly namer: Namer; readonly errorShape: ErrorShape },
): Part & { tags: [string] } {
  const { operationId, summary, tag } = namesOf(method, path);
  const parameters = parametersOf(built.parameters, namer);
  const codes = built[notes.refusals] as readonly Code[];
  const requestBody = bodyOf(built[notes.reads], built.requestBody, namer);
  const errors = errorResponsesOf(codes, errorShape, path);
  return {
    operationId,
    summary,
    tags: [tag],
    security: Array.isArray(built.security) ? built.security : [],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === null ? {} : { requestBody }),
    responses: { ...errors, ...ownResponses(recordAt(built, 'responses'), errors, shared, namer) },
  };
}

function parametersOf(built: unknown, namer: Namer): readonly Part[] {
  const all = Array.isArray(built) ? built.map((one) => withSchema(one, namer)) : [];
  // A schema describes the rest of a path as `*`. After the renaming there would be a second parameter without a
  // description.
  const knowsRest = all.some(({ name }) => name === '*');
  const known = knowsRest ? all.filter(({ name }) => name !== REST) : all;
  return known.map((one) => (one.name === '*' ? { ...one, name: REST } : one));
}

/** @param reads by media type, for a route that reads its body by hand */
function bodyOf(reads: unknown, built: unknown, namer: Namer): Part | null {
  if (isRecord(reads)) {
    const content = Object.entries(reads).map(([type, schema]) => [type, { schema: namer.refer(schema) }]);
    return { required: true, content: Object.fromEntries(content) };
  }
  return isRecord(built) ? { ...built, content: contentOf(recordAt(built, 'content'), namer) } : null;
}

/**
 * Returns the error responses of a route. If a route and its surface have different errors with the same status, the
 * description shows both shapes.
 */
function ownResponses(
  built: Part,
  errors: Readonly<Record<string, { $ref: string }>>,
  components: Errors,
  namer: Namer,
): Part {
  return Object.fromEntries(
    Object.entries(built).map(([status, response]) => {
      const part = isRecord(response) ? response : {};
      const shared = components[errors[status]?.$ref.split('/').at(-1) ?? ''] ?? {};
      const all = eitherOf(recordAt(shared, 'content'), recordAt(part, 'content'));
      const content = Object.keys(all).length === 0 ? {} : { content: contentOf(all, namer) };
      const description = part.description === 'Default Response' ? 'Done.' : part.description;
      return [status, { ...part, description, ...content }];
    }),
  );
}

/** Joins both contents. A media type with two shapes accepts either. */
function eitherOf(one: Part, other: Part): Part {
  const both = Object.entries(other).map(([type, media]) => {
    const schemas = [recordAt(one, type).schema, isRecord(media) ? media.schema : undefined];
    return [type, type in one ? { schema: { anyOf: schemas } } : media];
  });
  return { ...one, ...Object.fromEntries(both) };
}

function contentOf(content: Part, namer: Namer): Part {
  return Object.fromEntries(Object.entries(content).map(([type, media]) => [type, withSchema(media, namer)]));
}

function withSchema(part: unknown, namer: Namer): Part {
  if (!isRecord(part)) return {};
  return 'schema' in part ? { ...part, schema: namer.refer(part.schema) } : part;
}

function recordAt(part: Part, name: string): Part {
  const value = part[name];
  return isRecord(value) ? value : {};
}
