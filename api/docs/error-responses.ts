/** Which errors an operation may answer with, in the shape of its surface, with bodies that the code really sends. */
import { type TSchema, Type } from 'typebox';
import {
  type ApiError,
  BODY_BYTES_MAX,
  conflict,
  forbidden,
  internalError,
  invalidFields,
  notAuthenticated,
  notFound,
  payloadTooLarge,
  serviceUnavailable,
  tooManyRequests,
} from '#api/errors.ts';
import { type ErrorShape, toErrorReply } from '#api/http/envelopes.ts';
import { MapOf } from '#api/schemas.ts';
import type { DocumentedSurface } from './route.ts';

export interface ErrorResponse {
  readonly status: string;
  readonly description: string;
  readonly contentType: string;
  /** The name of the envelope's schema among the components. */
  readonly schema: string;
  readonly example: unknown;
}

const DetailValue = Type.Union([
  Type.String(),
  Type.Number(),
  Type.Boolean(),
  Type.Null(),
  Type.Array(Type.String()),
]);

/** By the names under which the description shows them. */
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
};

const schemaOf: Readonly<Record<ErrorShape, string>> = { v1: 'ErrorV1', v2: 'ErrorV2', v3: 'ProblemV3' };

const kinds = {
  invalid: [
    invalidFields({ name: 'Required' }),
    'A part of the request does not have the shape it should have.',
  ],
  anonymous: [
    notAuthenticated(),
    'No credentials, or none that are valid; on v1 also: not the right to do this.',
  ],
  forbidden: [forbidden('Survey is not accepting submissions'), 'This is not possible now, whoever asks.'],
  missing: [notFound('Survey', 'cly3k9x2p0000abcd1234efgh'), 'There is no such thing.'],
  conflict: [conflict('Another survey has this slug; choose another one'), 'It is taken, or was used.'],
  large: [payloadTooLarge(), `The body has more than ${BODY_BYTES_MAX} bytes.`],
  limited: [
    tooManyRequests(30),
    'Over a limit, of the gateway or of the application; Retry-After says for how long.',
  ],
  fault: [internalError(null), 'A fault of ours.'],
  unavailable: [
    serviceUnavailable('The database is busy. Please try again in a few seconds.'),
    'The service is starting, or its database is busy; Retry-After says for how long.',
  ],
} as const satisfies Readonly<Record<string, readonly [ApiError, string]>>;

const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

/**
 * @param isAuthenticated whether credentials are asked for
 * @param hasParameters whether the path or the query has any
 */
export function errorResponsesOf(
  method: string,
  path: string,
  {
    surface,
    isAuthenticated,
    hasParameters,
  }: {
    readonly surface: DocumentedSurface;
    readonly isAuthenticated: boolean;
    readonly hasParameters: boolean;
  },
): readonly ErrorResponse[] {
  const { errorShape, isCrossOrigin, name } = surface;
  const isPage = name === 'pages' && !isAuthenticated;
  if (isPage && !path.startsWith('/api/'))
    return path.startsWith('/js/') ? [toErrorResponse(kinds.missing, errorShape, path)] : [];
  const takesBody = METHODS_WITH_BODY.has(method);
  const isSubmission = isCrossOrigin && takesBody;
  const applicable: readonly (keyof typeof kinds | false)[] = [
    (takesBody || hasParameters) && 'invalid',
    isAuthenticated && 'anonymous',
    (isSubmission || path === '/api/auth/signup') && 'forbidden',
    (path.includes('{') || path.startsWith('/api/packages/') || (takesBody && !isPage)) && 'missing',
    takesBody && !isPage && 'conflict',
    takesBody && 'large',
    !/\/(health|ready)$/.test(path) && 'limited',
    'fault',
    'unavailable',
  ];
  return applicable.flatMap((kind) =>
    kind === false ? [] : [toErrorResponse(kinds[kind], errorShape, path)],
  );
}

function toErrorResponse(
  [error, description]: readonly [ApiError, string],
  errorShape: ErrorShape,
  path: string,
): ErrorResponse {
  const { status, contentType, body } = toErrorReply(error, {
    errorShape,
    requestId: '0f8fad5b-d9cb-469f-a165-70867728950e',
    path,
    showsParserText: false,
  });
  return {
    status: String(status),
    description,
    contentType: contentType.split(';')[0] ?? contentType,
    schema: status === 429 && errorShape === 'v3' ? 'ErrorV2' : schemaOf[errorShape],
    example: body,
  };
}
