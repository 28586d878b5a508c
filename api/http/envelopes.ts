/**
 * Turns an ApiError into the body of its surface: `{code, message, details}` on v1, `{error: {code, message, details}}`
 * on v2, and problem details (RFC 9457) on v3. Pure.
 */
import { type ApiError, type Code, NO_ACCESS, UNSUPPORTED_FIELD } from '#api/errors.ts';

export type ErrorShape = 'v1' | 'v2' | 'v3';

interface ErrorReply {
  readonly status: number;
  readonly contentType: 'application/json; charset=utf-8' | 'application/problem+json; charset=utf-8';
  readonly body: unknown;
}

export interface ErrorContext {
  readonly errorShape: ErrorShape;
  readonly requestId: string;
  /** The path of the request, without its query. */
  readonly path: string;
  /** The route's own message for a malformed body. */
  readonly malformedJsonMessage?: string | undefined;
  /** The part of the request that does not fit the schema. undefined for the body. */
  readonly part?: string | undefined;
  /** Whether the reply repeats what the JSON parser found, as only client routes do. */
  readonly showsParserText: boolean;
}

export function toErrorReply(error: ApiError, context: ErrorContext): ErrorReply {
  if (error.code === 'too_many_requests' && context.errorShape !== 'v1') {
    // v2 and v3 use the body that the gateway sends for a 429.
    return {
      status: error.statusCode,
      contentType: json,
      body: { error: { code: error.statusCode, message: 'Too Many Requests' } },
    };
  }
  switch (context.errorShape) {
    case 'v1':
      return { status: error.statusCode, contentType: json, body: v1Body(error, context) };
    case 'v2':
      return { status: v2Status(error.code, error.statusCode), contentType: json, body: v2Body(error) };
    case 'v3':
      return { status: error.statusCode, contentType: problemJson, body: v3Body(error, context) };
  }
}

const json = 'application/json; charset=utf-8';
const problemJson = 'application/problem+json; charset=utf-8';

function v1Body(error: ApiError, context: ErrorContext): unknown {
  if (error.code !== 'malformed_json') {
    const code = error.code === 'invalid_fields' ? 'bad_request' : error.code;
    return { code, message: error.message, details: error.details };
  }
  return {
    code: 'bad_request',
    message: context.malformedJsonMessage ?? error.message,
    details: context.showsParserText ? error.details : {},
  };
}

function v2Status(code: Code, status: number): number {
  return code === 'invalid_fields' ? 422 : status;
}

const v2Messages: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  413: 'Payload Too Large',
  422: 'Unprocessable Entity',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

function v2Body(error: ApiError): unknown {
  const code = v2Status(error.code, error.statusCode);
  const message = v2Messages[code] ?? error.message;
  // A caller without a right gets no details. A caller who reached a maximum learns which one.
  if (code === 401 || error.message === NO_ACCESS) return { error: { code, message } };
  return { error: { code, message, details: v2Details(error) } };
}

function v2Details(error: ApiError): readonly { field: string; issue: string }[] {
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
      if (typeof type !== 'string') return [{ field: 'route', issue: error.message }];
      return [notFoundDetails[type] ?? { field: camelCase(type), issue: 'not found' }];
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

/** v2 has other names for these types. */
const notFoundDetails: Readonly<Record<string, { readonly field: string; readonly issue: string }>> = {
  Workspace: { field: 'workspaceId', issue: 'workspace not found' },
  'Attribute Key': { field: 'contactAttributeKey', issue: 'not found' },
};

/** Turns `Action Class` into `actionClass`. */
function camelCase(type: string): string {
  return type.charAt(0).toLowerCase() + type.slice(1).replaceAll(' ', '');
}

const v3Titles: Readonly<Record<number, string>> = {
  ...v2Messages,
  422: 'Unprocessable Content',
};

function v3Body(error: ApiError, context: ErrorContext): unknown {
  const code =
    error.code === 'invalid_fields' || error.code === 'malformed_json' ? 'bad_request' : error.code;
  const params = invalidParams(error);
  return {
    title: v3Titles[error.statusCode] ?? error.message,
    status: error.statusCode,
    detail: v3Detail(error, context),
    requestId: context.requestId,
    code,
    instance: context.path,
    ...detailsOf(error, params),
  };
}

/** Returns the details of an error. They do not mention key headers, because v3 also accepts sessions. */
function detailsOf(error: ApiError, params: readonly InvalidParam[] | null): object {
  if (params !== null) return { invalid_params: params };
  return error.code === 'not_authenticated' ? {} : { details: error.details };
}

const nameOfPart: Readonly<Record<string, string>> = {
  body: 'request body',
  querystring: 'query parameters',
  params: 'route parameters',
};

function v3Detail(error: ApiError, context: ErrorContext): string {
  switch (error.code) {
    case 'invalid_fields': {
      const part = context.part ?? 'body';
      return `Invalid ${nameOfPart[part] ?? 'request body'}`;
    }
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

interface InvalidParam {
  readonly name: string;
  readonly reason: string;
  readonly code?: 'unsupported_field';
}

function invalidParams({ code, details, message }: ApiError): readonly InvalidParam[] | null {
  if (code === 'malformed_json') return [{ name: 'body', reason: message }];
  if (code !== 'invalid_fields') return null;
  return Object.entries(details).map(
    ([name, reason]): InvalidParam => ({
      name,
      reason: String(reason),
      ...(reason === UNSUPPORTED_FIELD ? { code: 'unsupported_field' } : {}),
    }),
  );
}
