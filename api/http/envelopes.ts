/**
 * Turns an ApiError into the body of its surface: `{code, message, details}` on v1, `{error: {code, message, details}}`
 * on v2, and problem details (RFC 9457) on v3. Pure.
 */
import { STATUS_CODES } from 'node:http';
import { type ApiError, NO_ACCESS } from '#api/errors.ts';

export type ErrorShape = 'v1' | 'v2' | 'v3';

interface ErrorReply {
  readonly status: number;
  readonly mediaType: 'application/json' | 'application/problem+json';
  readonly body: unknown;
}

/** The request that is answered. */
interface Answered {
  readonly requestId: string;
  /** Without a query. */
  readonly path: string;
}

export function toErrorReply(error: ApiError, shape: ErrorShape, request: Answered): ErrorReply {
  if (shape === 'v1') return { status: error.statusCode, mediaType: 'application/json', body: v1Body(error) };
  // v3 uses the body that the gateway sends for a 429, too.
  if (shape === 'v2' || error.statusCode === 429) return v2Reply(error);
  return { status: error.statusCode, mediaType: 'application/problem+json', body: v3Body(error, request) };
}

function v1Body({ code, message, details }: ApiError): object {
  return { code: code === 'invalid_fields' ? 'bad_request' : code, message, details };
}

function v2Reply(error: ApiError): ErrorReply {
  const status = error.code === 'invalid_fields' ? 422 : error.statusCode;
  const code = { code: status, message: STATUS_CODES[status] };
  // A caller without a right gets no details. A caller who reached a maximum learns which one.
  const isShort = status === 401 || status === 429 || error.message === NO_ACCESS;
  const body = { error: isShort ? code : { ...code, details: v2Details(error) } };
  return { status, mediaType: 'application/json', body };
}

function v2Details({ details, message }: ApiError): readonly { field: string; issue: string }[] {
  const type = details.resource_type;
  if (typeof type === 'string') return [{ field: camelCase(type), issue: 'not found' }];
  const issues = Object.entries(details).map(([field, issue]) => ({ field, issue: String(issue) }));
  return issues.length === 0 ? [{ field: 'error', issue: message }] : issues;
}

/** Turns `Action Class` into `actionClass`. */
function camelCase(type: string): string {
  return type.charAt(0).toLowerCase() + type.slice(1).replaceAll(' ', '');
}

function v3Body({ code, details, message, statusCode }: ApiError, { requestId, path }: Answered): object {
  const common = { title: STATUS_CODES[statusCode], status: statusCode, requestId, instance: path };
  // v3 only reads, so all its fields are in the query.
  if (code === 'invalid_fields') {
    const params = Object.entries(details).map(([name, reason]) => ({ name, reason: String(reason) }));
    return { ...common, code: 'bad_request', detail: 'Invalid query parameters', invalid_params: params };
  }
  // The details of a 401 mention only key headers, but v3 also accepts sessions.
  return { ...common, code, detail: message, ...(code === 'not_authenticated' ? {} : { details }) };
}
