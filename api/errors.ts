/**
 * Every error that the API returns, independent of the surface. A route throws one of these, and http/error-handler.ts
 * turns it into the body of the surface. Messages are for the caller. Internal details go into `cause`, and from there
 * into the log.
 */

export type Code =
  | 'bad_request'
  | 'invalid_fields'
  | 'malformed_json'
  | 'not_authenticated'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'payload_too_large'
  | 'too_many_requests'
  | 'service_unavailable'
  | 'internal_server_error';

type DetailValue = string | number | boolean | null | readonly string[];
export type Details = Readonly<Record<string, DetailValue>>;

/** Problems by dotted path, such as `questions.0.headline` -> `Required`. */
export type Issues = Readonly<Record<string, string>>;

export type ResourceType =
  | 'Workspace'
  | 'Survey'
  | 'Response'
  | 'Display'
  | 'Action Class'
  | 'Attribute Key'
  | 'Attribute Class'
  | 'Contact'
  | 'Person'
  | 'Webhook'
  | 'Segment'
  | 'Language'
  | 'Organization'
  | 'API Key'
  | 'file'
  | 'contact';

const statuses: Readonly<Record<Code, number>> = {
  bad_request: 400,
  invalid_fields: 400,
  malformed_json: 400,
  not_authenticated: 401,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  payload_too_large: 413,
  too_many_requests: 429,
  service_unavailable: 503,
  internal_server_error: 500,
};

/** Time after which clients try again. It is enough for another process to finish a write or to start. */
const UNAVAILABLE_RETRY_SECONDS = 2;

/** A person has to act first. */
const FAULT_RETRY_SECONDS = 30;

export const BODY_BYTES_MAX = 2_097_152;

export class ApiError extends Error {
  readonly code: Code;
  /** The status on v1 and v3. v2 uses another one for invalid fields. */
  readonly statusCode: number;
  readonly details: Details;

  constructor(code: Code, message: string, details: Details = {}, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ApiError';
    this.code = code;
    this.statusCode = statuses[code];
    this.details = details;
  }
}

export function badRequest(message: string, details?: Details): ApiError {
  return new ApiError('bad_request', message, details);
}

/** The reason for an unknown field, on routes that refuse such fields. */
export const UNSUPPORTED_FIELD = 'is not a field of this request';

export function invalidFields(issues: Issues): ApiError {
  return new ApiError('invalid_fields', 'Fields are missing or incorrectly formatted', issues);
}

export function notAuthenticated(): ApiError {
  return new ApiError('not_authenticated', 'Not authenticated', {
    'x-Api-Key': 'Header not provided or API Key invalid',
  });
}

/** The message when a right is missing, which is 401, or 403 in some cases on v2 and v3. */
export const NO_ACCESS = 'You are not authorized to access this resource';

export function unauthorized(): ApiError {
  return new ApiError('unauthorized', NO_ACCESS);
}

export function forbidden(message: string, details?: Details): ApiError {
  return new ApiError('forbidden', message, details);
}

export function notFound(type: ResourceType, id: string | null): ApiError {
  return new ApiError('not_found', `${type} not found`, { resource_id: id, resource_type: type });
}

/** Returns `found`, unless it is missing. @throws ApiError not_found */
export function existing<T>(found: T | null | undefined, type: ResourceType, id: string | null): T {
  if (found === null || found === undefined) throw notFound(type, id);
  return found;
}

export function routeNotFound(): ApiError {
  return new ApiError('not_found', 'There is no such route; check the path against the API description');
}

export function methodNotAllowed(method: string, allowed: readonly string[]): ApiError {
  return new ApiError('method_not_allowed', `The HTTP ${method} method is not supported by this route.`, {
    allowed_methods: allowed,
  });
}

export function conflict(message: string, details?: Details): ApiError {
  return new ApiError('conflict', message, details);
}

/** @param reason the parser's message, for the details of replies on the client API */
export function malformedJson(reason: string): ApiError {
  return new ApiError('malformed_json', 'Malformed JSON input, please check your request body', {
    error: reason,
  });
}

/** Creates an error for a body that is JSON, or too large to be parsed, and breaks a limit of all bodies. */
export function refusedBody(reason: string): ApiError {
  return badRequest(reason, { error: reason });
}

export function payloadTooLarge(): ApiError {
  return new ApiError('payload_too_large', 'Payload Too Large', {
    error: `Request body must not exceed ${BODY_BYTES_MAX} bytes`,
  });
}

export class RetryLater extends ApiError {
  readonly retryAfterSeconds: number;

  constructor(
    code: 'too_many_requests' | 'service_unavailable',
    message: string,
    retryAfterSeconds: number,
    { details = {}, ...options }: ErrorOptions & { readonly details?: Details } = {},
  ) {
    super(code, message, details, options);
    this.name = 'RetryLater';
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export const TOO_MANY_REQUESTS = 'Maximum number of requests reached. Please try again later.';

/**
 * Creates an error for a caller that is over a limit of the application.
 *
 * @param retryAfterSeconds until the window ends
 */
export function tooManyRequests(retryAfterSeconds: number): RetryLater {
  return new RetryLater('too_many_requests', TOO_MANY_REQUESTS, retryAfterSeconds);
}

/** Creates an error for a dependency that is busy or has not started yet. */
export function serviceUnavailable(message: string, cause?: unknown): RetryLater {
  return new RetryLater('service_unavailable', message, UNAVAILABLE_RETRY_SECONDS, { cause });
}

/** Creates an internal error of the service. The cause is logged and never sent. */
export function internalError(cause: unknown): ApiError {
  return new ApiError('internal_server_error', 'Something went wrong. Please try again.', {}, { cause });
}

const faults = {
  database_full:
    'The database has no space left, so nothing was stored. The operator of this service has to free some.',
  database_damaged:
    'The database is damaged. Tell the operator of this service, who has to restore it from a backup.',
  database_unusable:
    'The database cannot be read or written. Tell the operator of this service; its log says what is wrong.',
} as const;

/** @param problem a code for programs, which is also in the details */
export function databaseFailed(problem: keyof typeof faults, cause: unknown): RetryLater {
  const options = { cause, details: { error: problem } };
  return new RetryLater('service_unavailable', faults[problem], FAULT_RETRY_SECONDS, options);
}
