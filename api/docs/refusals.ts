/**
 * The errors that a route may return: those of its surface, its method and its schemas, and those that its own code
 * declares. The description and the tests use the same list. Pure.
 */
import type { FastifyContextConfig, FastifySchema } from 'fastify';
import type { Credentials } from '#api/auth/plugin.ts';
import type { Code } from '#api/errors.ts';
import type { ErrorShape } from '#api/http/envelopes.ts';
import { refusalsOfHooks } from '#api/http/refuses.ts';
import { isRecord } from '#api/values/schemas.ts';

/** The parts of a surface that concern its routes, see `Surface`. */
export interface DescribedSurface {
  readonly credentials: Credentials | null;
  readonly limit: object | null;
  readonly errorShape: ErrorShape;
}

interface RouteFacts {
  readonly method: string;
  readonly url: string;
  readonly schema?: FastifySchema | undefined;
  readonly config?: FastifyContextConfig | undefined;
  readonly onRequest?: unknown;
  readonly preValidation?: unknown;
  readonly preHandler?: unknown;
}

/** The service may be starting, its database may be busy, and any code may have a fault. */
const always: readonly Code[] = ['internal_server_error', 'service_unavailable'];

const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
const READING_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

export function refusalsOf(route: RouteFacts, surface: DescribedSurface): ReadonlySet<Code> {
  return new Set([
    ...always,
    ...refusalsOfPath(route),
    ...refusalsOfBody(route),
    ...refusalsOfCredentials(route, surface),
    ...(isLimited(route, surface) ? (['too_many_requests'] as const) : []),
    ...[route.onRequest, route.preValidation, route.preHandler].flatMap(refusalsOfHooks),
    ...(route.config?.refuses ?? []),
  ]);
}

/**
 * Returns the errors of a path. The router refuses path parameters that are too long. A schema may refuse the path and
 * the query.
 */
function refusalsOfPath({ url, schema }: RouteFacts): readonly Code[] {
  const mayMismatch = isNarrow(schema?.params) || schema?.querystring !== undefined;
  return [
    ...(/[:*]/.test(url) ? (['bad_request'] as const) : []),
    ...(mayMismatch ? (['invalid_fields'] as const) : []),
  ];
}

/** Whether a schema of path parameters requires more than text. */
function isNarrow(schema: unknown): boolean {
  const properties = isRecord(schema) && isRecord(schema.properties) ? schema.properties : {};
  return Object.values(properties).some(
    (one) => !isRecord(one) || Object.keys(one).some((key) => key !== 'type' && key !== 'description'),
  );
}

function refusalsOfBody({ method, schema, config }: RouteFacts): readonly Code[] {
  if (READING_METHODS.has(method) || config?.isBodyStreamed === true) return [];
  // A body that the route ignores is still read, within the limit.
  if (!METHODS_WITH_BODY.has(method)) return ['payload_too_large'];
  return [
    'malformed_json',
    'bad_request',
    'payload_too_large',
    ...(schema?.body ? (['invalid_fields'] as const) : []),
  ];
}

function refusalsOfCredentials({ method, config }: RouteFacts, surface: DescribedSurface): readonly Code[] {
  const accepted = config?.credentials === undefined ? surface.credentials : config.credentials;
  if (accepted === null) return [];
  // A session does not count for changes that pages of other origins request.
  const mayBeForeign = accepted !== 'key' && !READING_METHODS.has(method);
  return ['not_authenticated', ...(mayBeForeign ? (['forbidden'] as const) : [])];
}

/** Whether the application limits the route. Otherwise the gateway does. */
function isLimited({ config }: RouteFacts, surface: DescribedSurface): boolean {
  return config?.limit === undefined ? surface.limit !== null : config.limit !== null;
}
