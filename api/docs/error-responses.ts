/**
 * The error replies that operations refer to: one for each shape and status. Their bodies come from the code that
 * sends them.
 */
import { STATUS_CODES } from 'node:http';
import { type TSchema, Type } from 'typebox';
import {
  type ApiError,
  badRequest,
  type Code,
  conflict,
  forbidden,
  internalError,
  invalidFields,
  malformedJson,
  methodNotAllowed,
  notAuthenticated,
  notFound,
  payloadTooLarge,
  serviceUnavailable,
  tooManyRequests,
  unauthorized,
} from '#api/errors.ts';
import { type ErrorShape, toErrorReply } from '#api/http/envelopes.ts';
import { MapOf } from '#api/values/schemas.ts';

import type { DescribedSurface } from './route.ts';

type Part = Readonly<Record<string, unknown>>;

const DetailValue = Type.Union([
  Type.String(),
  Type.Number(),
  Type.Boolean(),
  Type.Null(),
  Type.Array(Type.String()),
]);

/** Schemas of error bodies by their names in the description. */
export const envelopeSchemas: Readonly<Record<string, TSchema>> = {
  ErrorV1: Type.Object(
    { code: Type.String(), message: Type.String(), details: MapOf(DetailValue) },
    { description: 'An error of v1, and of the client API of v2.' },
  ),
  ErrorV2: Type.Object(
    {
      error: Type.Object({
        code: Type.Integer(),
        message: Type.String(),
        details: Type.Optional(Type.Array(Type.Object({ field: Type.String(), issue: Type.String() }))),
      }),
    },
    { description: 'An error of v2, and the 429 of v3.' },
  ),
  ProblemV3: Type.Object(
    {
      title: Type.String(),
      status: Type.Integer(),
      detail: Type.String(),
      requestId: Type.String(),
      code: Type.String(),
      instance: Type.String(),
      details: Type.Optional(MapOf(DetailValue)),
      invalid_params: Type.Optional(Type.Array(Type.Object({ name: Type.String(), reason: Type.String() }))),
    },
    { description: 'An error of v3: problem details (RFC 9457).' },
  ),
  GatewayProblem: Type.Object(
    {
      type: Type.String(),
      title: Type.String(),
      status: Type.Integer(),
      detail: Type.String(),
      code: Type.String(),
      message: Type.String(),
      details: Type.Object({}),
      error: Type.Optional(Type.Object({ code: Type.Integer(), message: Type.String() })),
      'violated-policies': Type.Optional(Type.Array(Type.String())),
    },
    {
      description: 'An error of the gateway: problem details (RFC 9457) that clients of every version read.',
    },
  ),
};

const schemaOf: Readonly<Record<ErrorShape, string>> = { v1: 'ErrorV1', v2: 'ErrorV2', v3: 'ProblemV3' };
const samples: Readonly<Record<Code, ApiError>> = {
  bad_request: badRequest('Survey is part of another workspace'),
  invalid_fields: invalidFields({ name: 'Required' }),
  malformed_json: malformedJson("Expected property name or '}' in JSON at position 1"),
  not_authenticated: notAuthenticated(),
  unauthorized: unauthorized(),
  forbidden: forbidden('Survey is not accepting submissions'),
  not_found: notFound('Survey', 'cly3k9x2p0000abcd1234efgh'),
  method_not_allowed: methodNotAllowed('PATCH', ['GET', 'HEAD', 'DELETE']),
  conflict: conflict('Another survey has this slug; choose another one'),
  payload_too_large: payloadTooLarge(),
  too_many_requests: tooManyRequests(30),
  internal_server_error: internalError(null),
  service_unavailable: serviceUnavailable('The database is busy. Please try again in a few seconds.'),
};

const headers = { 'retry-after': { description: 'Seconds.', schema: { type: 'integer' } } };

/** Each shape with its replies: every sample that has the status. */
const replies = (['v1', 'v2', 'v3'] as const).flatMap((shape) => {
  const byStatus = Map.groupBy(Object.entries(samples), ([, error]) => replyTo(error, shape).status);
  return [...byStatus].map(([status, of]) => ({ shape, status, of }));
});

/** @returns the errors of a surface: status -> reference to the components. A 405 belongs to no operation */
export function errorsOf({ name, errorShape }: DescribedSurface): Record<string, { $ref: string }> {
  const isPossible = (status: number): boolean => status !== 405 && !(status === 401 && name === 'client');
  return Object.fromEntries(
    replies
      .filter(({ shape, status }) => shape === errorShape && isPossible(status))
      .map(({ status }) => [status, { $ref: `#/components/responses/${nameOf(errorShape, status)}` }]),
  );
}

export function errorComponents(): Record<string, Part> {
  return Object.fromEntries(
    replies.map(({ shape, status, of }) => [nameOf(shape, status), component(shape, status, of)]),
  );
}

function component(shape: ErrorShape, status: number, of: readonly (readonly [string, ApiError])[]): Part {
  const [[, first] = ['', badRequest('')]] = of;
  const name = status === 429 && shape === 'v3' ? schemaOf.v2 : schemaOf[shape];
  const examples = of.map(([code, error]) => [code, { value: replyTo(error, shape).body }]);
  return {
    description: STATUS_CODES[status],
    ...(status === 429 || status === 503 ? { headers } : {}),
    content: {
      [replyTo(first, shape).contentType.split(';')[0] ?? '']: {
        schema: reference(name),
        examples: Object.fromEntries(examples),
      },
      ...(status === 429 ? { 'application/problem+json': { schema: reference('GatewayProblem') } } : {}),
    },
  };
}

function reference(name: string) {
  return { $ref: `#/components/schemas/${name}` };
}

function nameOf(shape: ErrorShape, status: number): string {
  return `${schemaOf[shape]}-${status}`;
}

function replyTo(error: ApiError, errorShape: ErrorShape) {
  return toErrorReply(error, {
    errorShape,
    requestId: '0f8fad5b-d9cb-469f-a165-70867728950e',
    path: '/api/v3/surveys',
    showsParserText: false,
  });
}
