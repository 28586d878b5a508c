/** An ApiError as the body of its family's envelope (contract errors.md §2 to §4). Pure. */
import { type ApiError, type Code, type Details, UNSUPPORTED_FIELD } from '#api/errors.ts';
import type { Envelope } from '#api/surfaces/surface.ts';

export interface ErrorReply {
  readonly status: number;
  readonly contentType: 'application/json; charset=utf-8' | 'application/problem+json; charset=utf-8';
  readonly body: unknown;
}

export interface ErrorPlace {
  readonly envelope: Envelope;
  readonly requestId: string;
  /** The request's path without its query. */
  readonly path: string;
  /** Replaces the text of a malformed body where a route has its own. */
  readonly malformedJsonMessage?: string | undefined;
  /** Which part of the request did not have the shape of the route's schema; unset: the body. */
  readonly part?: string | undefined;
  /** Client routes say what the JSON parser found; the others do not. */
  readonly showsParserText: boolean;
}

export function toErrorReply(error: ApiError, place: ErrorPlace): ErrorReply {
  if (error.code === 'too_many_requests' && place.envelope !== 'A') {
    // The specification's own body for v2 and v3, not the envelope of their other refusals (SPEC.md §7).
    return {
      status: error.statusCode,
      contentType: json,
      body: { error: { code: error.statusCode, message: 'Too Many Requests' } },
    };
  }
  switch (place.envelope) {
    case 'A':
      return { status: error.statusCode, contentType: json, body: envelopeA(error, place) };
    case 'B':
      return { status: statusB(error.code, error.statusCode), contentType: json, body: envelopeB(error) };
    case 'C':
      return { status: error.statusCode, contentType: problemJson, body: envelopeC(error, place) };
  }
}

const json = 'application/json; charset=utf-8';
const problemJson = 'application/problem+json; charset=utf-8';

function envelopeA(error: ApiError, place: ErrorPlace): unknown {
  if (error.code !== 'malformed_json') {
    const code = error.code === 'invalid_fields' ? 'bad_request' : error.code;
    return { code, message: error.message, details: error.details };
  }
  return {
    code: 'bad_request',
    message: place.malformedJsonMessage ?? error.message,
    details: place.showsParserText ? error.details : {},
  };
}

function statusB(code: Code, status: number): number {
  return code === 'invalid_fields' ? 422 : status;
}

const messagesB: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  413: 'Payload Too Large',
  422: 'Unprocessable Entity',
  500: 'Internal Server Error',
};

function envelopeB(error: ApiError): unknown {
  const code = statusB(error.code, error.statusCode);
  const message = messagesB[code] ?? error.message;
  // 401 and 403 say nothing beyond their status.
  if (code === 401 || code === 403) return { error: { code, message } };
  return { error: { code, message, details: detailsB(error) } };
}

function detailsB(error: ApiError): readonly { field: string; issue: string }[] {
  switch (error.code) {
    case 'malformed_json':
      return [{ field: 'error', issue: error.message }];
    case 'payload_too_large':
      return [{ field: 'body', issue: String(error.details.error) }];
    case 'internal_server_error':
      return [
        {
          field: 'error',
          issue: 'An error occurred while processing your request. Please try again later.',
        },
      ];
    case 'not_found': {
      const type = error.details.resource_type;
      return typeof type === 'string'
        ? [{ field: camelCase(type), issue: 'not found' }]
        : [{ field: 'route', issue: error.message }];
    }
    case 'invalid_fields':
      return Object.entries(error.details).map(([field, issue]) => ({ field, issue: String(issue) }));
    default: {
      const entries = Object.entries(error.details);
      return entries.length === 0
        ? [{ field: 'error', issue: error.message }]
        : entries.map(([field, issue]) => ({ field, issue: String(issue) }));
    }
  }
}

/** `Attribute Key` -> `attributeKey` */
function camelCase(type: string): string {
  return type.charAt(0).toLowerCase() + type.slice(1).replaceAll(' ', '');
}

const titlesC: Readonly<Record<number, string>> = {
  ...messagesB,
  422: 'Unprocessable Content',
};

function envelopeC(error: ApiError, place: ErrorPlace): unknown {
  const code =
    error.code === 'invalid_fields' || error.code === 'malformed_json' ? 'bad_request' : error.code;
  const params = invalidParams(error);
  return {
    title: titlesC[error.statusCode] ?? error.message,
    status: error.statusCode,
    detail: detailC(error, place),
    requestId: place.requestId,
    code,
    instance: place.path,
    ...(params === null ? { details: error.details } : { invalid_params: params }),
  };
}

const nameOfPart: Readonly<Record<string, string>> = {
  body: 'request body',
  querystring: 'query parameters',
  params: 'route parameters',
};

function detailC(error: ApiError, place: ErrorPlace): string {
  switch (error.code) {
    case 'invalid_fields':
      return `Invalid ${nameOfPart[place.part ?? 'body'] ?? 'request body'}`;
    case 'malformed_json':
      return 'Invalid request body';
    case 'payload_too_large':
      return String(error.details.error);
    case 'internal_server_error':
      return 'An unexpected error occurred.';
    default:
      return error.message;
  }
}

function invalidParams(error: ApiError): readonly { name: string; reason: string }[] | null {
  const toParams = (details: Details): readonly { name: string; reason: string; code?: string }[] =>
    Object.entries(details).map(([name, reason]) => ({
      name,
      reason: String(reason),
      ...(reason === UNSUPPORTED_FIELD ? { code: 'unsupported_field' } : {}),
    }));
  switch (error.code) {
    case 'invalid_fields':
      return toParams(error.details);
    case 'malformed_json':
      return [{ name: 'body', reason: error.message }];
    default:
      return null;
  }
}
