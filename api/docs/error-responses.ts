/**
 * The error replies that operations refer to: one for each shape and status. Their bodies come from the code that
 * sends them.
 */
import { type TSchema, Type } from 'typebox';
import {
  type ApiError,
  BODY_BYTES_MAX,
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
import { hasErrorPages } from '#api/http/error-page.ts';
import { isRecord, MapOf } from '#api/values/schemas.ts';

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
/** Suffix of the names of responses that are pages for browsers. */
const OR_PAGE = '-or-page';
const shapes: readonly ErrorShape[] = ['v1', 'v2', 'v3'];

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

const descriptions: Readonly<Record<string, string>> = {
  400: 'A part of the request does not have the shape it should have, or a rule forbids it.',
  401: 'No credentials, or none that are valid; on v1 also: not the right to do this.',
  403: 'Not possible now, or not for this caller.',
  404: 'Not found.',
  405: 'The path has other methods, which Allow lists.',
  409: 'Conflict: the name is taken, or the link or token was used.',
  413: `The body has more than ${BODY_BYTES_MAX} bytes.`,
  422: 'A field of the request does not have the shape it should have.',
  429: 'A limit of the gateway or of the application is exceeded; Retry-After has the seconds to wait.',
  500: 'An error of the server.',
  503: 'The service is starting, or its database is busy; Retry-After says for how long.',
};

const retryAfter = { 'retry-after': { description: 'Seconds.', schema: { type: 'integer' } } };
const headersOf: Readonly<Record<string, Part>> = {
  405: { allow: { description: 'Methods of the path.', schema: { type: 'string' } } },
  429: retryAfter,
  503: retryAfter,
};

/**
 * @param path some paths answer browsers with pages
 * @returns status -> reference to the components
 */
export function errorResponsesOf(
  codes: Iterable<Code>,
  shape: ErrorShape,
  path: string,
): Record<string, { $ref: string }> {
  const suffix = shape === 'v1' && hasErrorPages(path) ? OR_PAGE : '';
  return Object.fromEntries(
    [...codes].map((code) => {
      const { status } = replyTo(samples[code], shape);
      return [status, { $ref: `#/components/responses/${nameOf(shape, status)}${suffix}` }];
    }),
  );
}

export function errorComponents(): Record<string, Part> {
  const components: Record<string, Part> = {};
  for (const shape of shapes) {
    const byStatus = Map.groupBy(Object.entries(samples), ([, error]) => replyTo(error, shape).status);
    for (const [status, of] of byStatus) {
      const made = component(shape, status, of);
      components[nameOf(shape, status)] = made;
      if (shape === 'v1') components[nameOf(shape, status) + OR_PAGE] = withPage(made);
    }
  }
  return components;
}

function withPage(part: Part): Part {
  const content = isRecord(part.content) ? part.content : {};
  return { ...part, content: { ...content, 'text/html': { schema: { type: 'string' } } } };
}

function component(shape: ErrorShape, status: number, of: readonly (readonly [string, ApiError])[]): Part {
  const examples = Object.fromEntries(
    of.map(([code, error]) => [code, { value: replyTo(error, shape).body }]),
  );
  const contentType = of[0] === undefined ? '' : replyTo(of[0][1], shape).contentType;
  const name = status === 429 && shape === 'v3' ? schemaOf.v2 : schemaOf[shape];
  const headers = headersOf[status];
  const ofGateway = {
    'application/problem+json': { schema: { $ref: '#/components/schemas/GatewayProblem' } },
  };
  return {
    description: descriptions[status] ?? '',
    ...(headers === undefined ? {} : { headers }),
    content: {
      [contentType.split(';')[0] ?? '']: { schema: { $ref: `#/components/schemas/${name}` }, examples },
      ...(status === 429 ? ofGateway : {}),
    },
  };
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
