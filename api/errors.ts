/**
 * Every error the API answers with, independent of its shape on the wire. A route throws one of these, and
 * http/error-handler.ts turns it into the body of the surface. Messages are written for the caller; what only we may
 * know goes into `cause`, and from there into the log.
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
  | 'unprocessable_content'
  | 'too_many_requests'
  | 'service_unavailable'
  | 'internal_server_error';

type DetailValue = string | number | boolean | null | readonly string[];
export type Details = Readonly<Record<string, DetailValue>>;

type IssueCode =
  | 'dangling_reference'
  | 'duplicate_identifier'
  | 'duplicate_locale'
  | 'forbidden_identifier'
  | 'immutable_identifier'
  | 'invalid_locale'
  | 'invalid_reference'
  | 'missing_required_field'
  | 'missing_translation'
  | 'unsupported_field'
  | 'unsupported_locale';

/** What is wrong with one field. v3 sends all of it, the other surfaces the reason. */
export interface Issue {
  /** For people. */
  readonly reason: string;
  readonly code: IssueCode;
  /** The id, name or locale that is wrong. */
  readonly identifier?: string;
  /** What the missing thing would be, e.g. `block`. */
  readonly referenceType?: string;
  readonly missingId?: string;
  /** Path of the same identifier, further up. */
  readonly firstUsedAt?: string;
  /** Path of another field that does not go together with this one. */
  readonly conflictsWith?: string;
}

/** Dotted path -> what is wrong there. */
export type Issues = Readonly<Record<string, string | Issue>>;

/** Types that a 404 names. */
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
  | 'Delivery'
  | 'Tag'
  | 'Note'
  | 'Organization'
  | 'Member'
  | 'Invite'
  | 'Team'
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
  unprocessable_content: 422,
  too_many_requests: 429,
  service_unavailable: 503,
  internal_server_error: 500,
};

/** Long enough for another process to end its write, or for a start. */
const UNAVAILABLE_RETRY_SECONDS = 2;

/** Somebody has to do something first. */
const FAULT_RETRY_SECONDS = 30;

export const BODY_BYTES_MAX = 2_097_152;

export class ApiError extends Error {
  readonly code: Code;
  /** As envelopes A and C send it; envelope B has a status of its own for invalid fields. */
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

/** What is said of a field that a shape does not have, where such fields are refused. */
export const UNSUPPORTED_FIELD = 'is not a field of this request';

/** Fields are wrong; `details` has the reasons. */
export class FieldError extends ApiError {
  readonly issues: Issues;

  constructor(code: 'invalid_fields' | 'unprocessable_content', message: string, issues: Issues) {
    const reasons = Object.entries(issues).map(([path, issue]) => [path, reasonOf(issue)] as const);
    super(code, message, Object.fromEntries(reasons));
    this.name = 'FieldError';
    this.issues = issues;
  }
}

function reasonOf(issue: string | Issue): string {
  return typeof issue === 'string' ? issue : issue.reason;
}

/** @param issues dotted path -> what is wrong there, e.g. `questions.0.headline` -> `Required` */
export function invalidFields(issues: Issues): FieldError {
  return new FieldError('invalid_fields', 'Fields are missing or incorrectly formatted', issues);
}

/** The document has the right shape, but its parts do not go together. v3 only. */
export function invalidDocument(issues: Issues): FieldError {
  return new FieldError('unprocessable_content', 'Survey document failed validation', issues);
}

/** A value of the right shape that is taken. v3 only; elsewhere that is a conflict. */
export function unprocessable(issues: Issues): FieldError {
  return new FieldError('unprocessable_content', 'The request cannot be carried out as it is', issues);
}

export function notAuthenticated(): ApiError {
  return new ApiError('not_authenticated', 'Not authenticated', {
    'x-Api-Key': 'Header not provided or API Key invalid',
  });
}

/** Said of whoever lacks the right: as 401, or as 403 where v2 and v3 do so. */
export const NO_ACCESS = 'You are not authorized to access this resource';

export function unauthorized(): ApiError {
  return new ApiError('unauthorized', NO_ACCESS);
}

export function forbidden(message: string, details?: Details): ApiError {
  return new ApiError('forbidden', message, details);
}

/** @param id as the caller gave it; null when none was given */
export function notFound(type: ResourceType, id: string | null): ApiError {
  return new ApiError('not_found', `${type} not found`, { resource_id: id, resource_type: type });
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

/** @param reason what the parser found, for the details of client replies */
export function malformedJson(reason: string): ApiError {
  return new ApiError('malformed_json', 'Malformed JSON input, please check your request body', {
    error: reason,
  });
}

export function payloadTooLarge(): ApiError {
  return new ApiError('payload_too_large', 'Payload Too Large', {
    error: `Request body must not exceed ${BODY_BYTES_MAX} bytes`,
  });
}

/** The same request may succeed later. */
export class RetryLater extends ApiError {
  /** The reply carries it as Retry-After. */
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

/** The caller is over a limit of the application's. @param retryAfterSeconds until the window ends */
export function tooManyRequests(retryAfterSeconds: number): RetryLater {
  return new RetryLater('too_many_requests', TOO_MANY_REQUESTS, retryAfterSeconds);
}

/** What the service needs is busy, or not there yet. */
export function serviceUnavailable(message: string, cause?: unknown): RetryLater {
  return new RetryLater('service_unavailable', message, UNAVAILABLE_RETRY_SECONDS, { cause });
}

/** A fault of ours. The cause is logged, never sent. */
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

/** @param problem also the code for programs, in the details */
export function databaseFailed(problem: keyof typeof faults, cause: unknown): RetryLater {
  const options = { cause, details: { error: problem } };
  return new RetryLater('service_unavailable', faults[problem], FAULT_RETRY_SECONDS, options);
}
