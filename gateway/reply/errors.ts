/**
 * The bodies of the gateway's own replies: problem+json (RFC 9457). Existing clients expect the members `message`
 * (string) and `details` (object). `code` is never `too_many_requests`, which belongs to the application.
 */

export type ErrorCode =
  | 'gateway_bad_request'
  | 'gateway_method_not_allowed'
  | 'gateway_request_timeout'
  | 'gateway_header_too_large'
  | 'gateway_rate_limited'
  | 'gateway_banned'
  | 'gateway_denied'
  | 'gateway_forbidden'
  | 'gateway_client_busy'
  | 'gateway_store_unavailable'
  | 'gateway_overloaded'
  | 'gateway_upstream_unavailable'
  | 'gateway_upstream_timeout';

interface ErrorKind {
  readonly status: number;
  readonly title: string;
  /** Problem type of RFC 9457. `about:blank` means that the status says everything. */
  readonly type: string;
}

const BLANK = 'about:blank';
/** Problem types of draft-ietf-httpapi-ratelimit-headers-11. */
const DRAFT = 'https://iana.org/assignments/http-problem-types#';
const QUOTA_EXCEEDED = `${DRAFT}quota-exceeded`;
const REDUCED_CAPACITY = `${DRAFT}temporary-reduced-capacity`;
const ABNORMAL_USAGE = `${DRAFT}abnormal-usage-detected`;

export const ERRORS: Readonly<Record<ErrorCode, ErrorKind>> = {
  gateway_bad_request: { status: 400, title: 'Bad Request', type: BLANK },
  gateway_method_not_allowed: { status: 405, title: 'Method Not Allowed', type: BLANK },
  gateway_request_timeout: { status: 408, title: 'Request Timeout', type: BLANK },
  gateway_header_too_large: { status: 431, title: 'Request Header Fields Too Large', type: BLANK },
  gateway_rate_limited: { status: 429, title: 'Too Many Requests', type: QUOTA_EXCEEDED },
  /** An operator or a policy has banned the client or its credential. */
  gateway_banned: { status: 429, title: 'Too Many Requests', type: ABNORMAL_USAGE },
  /** The policy file's list deny names the client. */
  gateway_denied: { status: 429, title: 'Too Many Requests', type: ABNORMAL_USAGE },
  gateway_forbidden: { status: 403, title: 'Forbidden', type: ABNORMAL_USAGE },
  /** The client has reached its share of a bound. No policy denies the request. */
  gateway_client_busy: { status: 429, title: 'Too Many Requests', type: ABNORMAL_USAGE },
  gateway_store_unavailable: { status: 503, title: 'Service Unavailable', type: REDUCED_CAPACITY },
  gateway_overloaded: { status: 503, title: 'Service Unavailable', type: REDUCED_CAPACITY },
  gateway_upstream_unavailable: { status: 502, title: 'Bad Gateway', type: BLANK },
  gateway_upstream_timeout: { status: 504, title: 'Gateway Timeout', type: BLANK },
};

/** @param extra further members */
export function problemBody(code: ErrorCode, message: string, extra: object = {}): string {
  const { status, title, type } = ERRORS[code];
  const body = JSON.stringify({ type, title, status, detail: message, code, message, details: {}, ...extra });
  // JSON text may contain DEL. A header field, which may carry the body, must not.
  return body.replaceAll('\x7f', '\\u007f');
}
