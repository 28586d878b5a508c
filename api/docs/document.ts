/**
 * Builds the description with @fastify/swagger, and adds errors and names. It is loaded for its first reader, so that a
 * start does not wait for it, and works in slices, so that nobody else waits for long.
 */
import { setImmediate as otherWork } from 'node:timers/promises';
import fastifySwagger from '@fastify/swagger';
import fastify, { type RouteOptions } from 'fastify';
import { isRecord } from '#api/values/schemas.ts';
import { namedShapes } from './components.ts';
import { errorComponents, errorsOf } from './error-responses.ts';
import { createNamer, type Namer } from './named-schemas.ts';
import { type DescribedSurface, describeRoute, securitySchemes } from './route.ts';

type Part = Record<string, unknown>;
type FindSurface = (path: string) => DescribedSurface;

/** The number of routes that are described together. Between them the process does other work. */
const SLICE = 10;

/** @param routes all routes of the API, as they were added */
export async function describeRoutes(
  publicUrl: string,
  routes: readonly RouteOptions[],
  findSurface: FindSurface,
): Promise<object> {
  const namer = createNamer(namedShapes);
  const errors = errorComponents();
  const paths: [string, Part][] = [];
  for (const slice of slicesOf(routes)) {
    for (const [path, item] of Object.entries(await describeSlice(slice, findSurface))) {
      const surface = findSurface(path);
      // HEAD is no operation of its own.
      const { head: _, ...operations } = isRecord(item) ? item : {};
      paths.push([path, mapped(operations, (operation) => finished(operation, surface, errors, namer))]);
    }
    await otherWork();
  }
  const tags = new Set(paths.map(([path]) => findSurface(path).name));
  return {
    ...documentOf(publicUrl),
    tags: [...tags].map((name) => ({ name })),
    paths: Object.fromEntries(paths),
    components: { securitySchemes, responses: errors, schemas: namer.components() },
  };
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
  const { paths } = app.swagger();
  await app.close();
  return { ...paths };
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
        'Each operation lists all errors of its surface, whether its rows can cause them or not.',
        'Limits: the gateway answers 429 with `x-gateway-ratelimited` as `application/problem+json`, the application as `application/json`. The gateway also answers 400, 408, 429, 431, 502, 503 and 504 to any request, as GatewayProblem.',
        'A method that a path does not have is answered 405, a path that leads nowhere 404, in the shape of the surface.',
      ].join('\n\n'),
    },
    servers: [{ url: publicUrl }],
  };
}

/** Adds the errors of the surface to an operation, and refers to named schemas. */
function finished(operation: unknown, surface: DescribedSurface, shared: Part, namer: Namer): Part {
  const built = isRecord(operation) ? operation : {};
  const errors = errorsOf(surface);
  const own = mapped(built.responses, (response, status) => {
    const common = shared[errors[status]?.$ref.split('/').at(-1) ?? ''];
    return withContent(isRecord(response) ? response : {}, isRecord(common) ? common : {});
  });
  return {
    ...withNames({ ...built, responses: own }, namer),
    responses: { ...errors, ...withNames(own, namer) },
  };
}

/** If a route and its surface have different replies with one status, the description shows both shapes. */
function withContent(response: Part, common: Part): Part {
  const shared = isRecord(common.content) ? common.content : {};
  const both = mapped(response.content, (media, type) => {
    const schemas = [shared[type], media].flatMap((one) => (isRecord(one) ? [one.schema] : []));
    return type in shared ? { schema: { anyOf: schemas } } : media;
  });
  const content = { ...shared, ...both };
  return {
    ...response,
    description: response.description === 'Default Response' ? 'Done.' : response.description,
    ...(Object.keys(content).length === 0 ? {} : { content }),
  };
}

/** Replaces every schema of a part by one that refers to named schemas. */
function withNames(part: Part, namer: Namer): Part {
  return mapped(part, (value, key) => {
    if (key === 'schema') return namer.refer(value);
    if (Array.isArray(value)) return value.map((one) => (isRecord(one) ? withNames(one, namer) : one));
    return isRecord(value) ? withNames(value, namer) : value;
  });
}

function mapped(part: unknown, change: (value: unknown, key: string) => unknown): Part {
  const entries = Object.entries(isRecord(part) ? part : {});
  return Object.fromEntries(entries.map(([key, value]) => [key, change(value, key)]));
}
