/**
 * Every error that the API returns, independent of the surface. A route throws one of these, and http/error-handler.ts
 * turns it into the body of the surface. Messages are for the caller. Internal details go into `cause`, and from there
 * into the log.
 */

/** The status of each code on v1 and v3. v2 has another one for invalid fields. */
const statuses = {
  bad_request: 400,
  invalid_fields: 400,
  not_authenticated: 401,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  payload_too_large: 413,
  too_many_requests: 429,
  service_unavailable: 503,
  internal_server_error: 500,
} as const;

type Code = keyof typeof statuses;
type DetailValue = string | number | boolean | null | readonly string[];
/** For invalid fields: problems by dotted path, such as `questions.0.headline` -> `Required`. */
export type Details = Readonly<Record<string, DetailValue>>;

/** Time after which clients try again. It is enough for another process to finish a write or to start. */
const UNAVAILABLE_RETRY_SECONDS = 2;

export const BODY_BYTES_MAX = 2_097_152;

interface ErrorParts {
  readonly details?: Details | undefined;
  readonly cause?: unknown;
  readonly retryAfterSeconds?: number;
}

export class ApiError extends Error {
  readonly code: Code;
  readonly statusCode: number;
  readonly details: Details;
  /** null if trying again later does not help. */
  readonly retryAfterSeconds: number | null;

  constructor(code: Code, message: string, { details = {}, cause, retryAfterSeconds }: ErrorParts = {}) {
    super(message, { cause });
    this.name = 'ApiError';
    this.code = code;
    this.statusCode = statuses[code];
    this.details = details;
    this.retryAfterSeconds = retryAfterSeconds ?? null;
  }
}

export function badRequest(message: string, details?: Details): ApiError {
  return new ApiError('bad_request', message, { details });
}

export function invalidFields(issues: Readonly<Record<string, string>>): ApiError {
  return new ApiError('invalid_fields', 'Fields are missing or incorrectly formatted', { details: issues });
}

export function notAuthenticated(): ApiError {
  const details = { 'x-Api-Key': 'Header not provided or API Key invalid' };
  return new ApiError('not_authenticated', 'Not authenticated', { details });
}

/** The message when a right is missing, which is 401, or 403 in some cases on v2 and v3. */
export const NO_ACCESS = 'You are not authorized to access this resource';

export function unauthorized(): ApiError {
  return new ApiError('unauthorized', NO_ACCESS);
}

export function forbidden(message: string, details?: Details): ApiError {
  return new ApiError('forbidden', message, { details });
}

/** @param type such as `Survey` or `Action Class` */
export function notFound(type: string, id: string | null): ApiError {
  return new ApiError('not_found', `${type} not found`, {
    details: { resource_id: id, resource_type: type },
  });
}

/** Returns `found`, unless it is missing. @throws ApiError not_found */
export function existing<T>(found: T | null | undefined, type: string, id: string | null): T {
  if (found === null || found === undefined) throw notFound(type, id);
  return found;
}

export function conflict(message: string, details?: Details): ApiError {
  return new ApiError('conflict', message, { details });
}

export const TOO_MANY_REQUESTS = 'Maximum number of requests reached. Please try again later.';

/**
 * Creates an error for a caller that is over a limit of the application.
 *
 * @param retryAfterSeconds until the window ends
 */
export function tooManyRequests(retryAfterSeconds: number): ApiError {
  return new ApiError('too_many_requests', TOO_MANY_REQUESTS, { retryAfterSeconds });
}

/** Creates an error for a dependency that is busy or does not work, or has not started yet. */
export function serviceUnavailable(message: string, cause?: unknown, details?: Details): ApiError {
  const retryAfterSeconds = UNAVAILABLE_RETRY_SECONDS;
  return new ApiError('service_unavailable', message, { cause, details, retryAfterSeconds });
}
