/**
 * Which errors a route may answer with: those that its surface, its method and its schemas bring with them, and those
 * that its own code declares. The description and the tests read the same list. Pure.
 */
import type { FastifyContextConfig, FastifySchema } from 'fastify';
import type { Code } from '#api/errors.ts';
import { refusalsOfHooks } from '#api/http/refuses.ts';
import { isRecord } from '#api/schemas.ts';
import { surfaceOf } from './surfaces.ts';

export interface RouteFacts {
  readonly method: string;
  /** The router's pattern. */
  readonly url: string;
  readonly schema?: FastifySchema | undefined;
  readonly config?: FastifyContextConfig | undefined;
  /** The route's own hooks, which may say what they refuse. */
  readonly onRequest?: unknown;
  readonly preValidation?: unknown;
  readonly preHandler?: unknown;
}

/** The service may be starting, its database busy, and nobody is without faults. */
const always: readonly Code[] = ['internal_server_error', 'service_unavailable'];

const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
const READING_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

export function refusalsOf(route: RouteFacts): ReadonlySet<Code> {
  return new Set([
    ...always,
    ...refusalsOfPath(route),
    ...refusalsOfBody(route),
    ...refusalsOfCredentials(route),
    ...(isLimited(route) ? (['too_many_requests'] as const) : []),
    ...[route.onRequest, route.preValidation, route.preHandler].flatMap(refusalsOfHooks),
    ...(route.config?.refuses ?? []),
  ]);
}

/** A part of the path may be too long for the router; what a schema says of path and query may not be met. */
function refusalsOfPath({ url, schema }: RouteFacts): readonly Code[] {
  const mayMismatch = isNarrow(schema?.params) || schema?.querystring !== undefined;
  return [
    ...(/[:*]/.test(url) ? (['bad_request'] as const) : []),
    ...(mayMismatch ? (['invalid_fields'] as const) : []),
  ];
}

/** Whether a shape of path parameters, which are text, asks for more than text. */
function isNarrow(schema: unknown): boolean {
  const properties = isRecord(schema) && isRecord(schema.properties) ? schema.properties : {};
  return Object.values(properties).some(
    (one) => !isRecord(one) || Object.keys(one).some((key) => key !== 'type' && key !== 'description'),
  );
}

function refusalsOfBody({ method, schema, config }: RouteFacts): readonly Code[] {
  if (READING_METHODS.has(method) || config?.isBodyStreamed === true) return [];
  // A body that means nothing is read within the limit all the same.
  if (!METHODS_WITH_BODY.has(method)) return ['payload_too_large'];
  return ['malformed_json', 'payload_too_large', ...(schema?.body ? (['invalid_fields'] as const) : [])];
}

function refusalsOfCredentials({ method, url, config }: RouteFacts): readonly Code[] {
  const accepted = config?.credentials === undefined ? surfaceOf(url).credentials : config.credentials;
  if (accepted === null) return [];
  // A session does not count for what pages of other origins want to change.
  const mayBeForeign = accepted !== 'key' && !READING_METHODS.has(method);
  return ['not_authenticated', ...(mayBeForeign ? (['forbidden'] as const) : [])];
}

/** By the application or, in its place, by the gateway. */
function isLimited({ url, config }: RouteFacts): boolean {
  return config?.limit === undefined ? surfaceOf(url).limit !== null : config.limit !== null;
}
