/**
 * Lists the codes of the gateway's own replies, with the status, headers and words of each. No code is
 * `too_many_requests`: clients know that one as the application's.
 */
import { RATELIMITED_HEADER } from '#gateway/http/header-names.ts';
import { GROUPS, type GroupCode } from '#gateway/policy/groups.ts';
import type { Seconds } from '#shared/clock.ts';

export type ErrorCode =
  | 'gateway_bad_request'
  | 'gateway_method_not_allowed'
  | 'gateway_request_timeout'
  | 'gateway_header_too_large'
  | 'gateway_rate_limited'
  | GroupCode
  | 'gateway_banned'
  | 'gateway_denied'
  | 'gateway_forbidden'
  | 'gateway_client_busy'
  | 'gateway_store_unavailable'
  | 'gateway_overloaded'
  | 'gateway_upstream_unavailable'
  | 'gateway_upstream_timeout';

interface CodeRow {
  readonly status: number;
  readonly title: string;
  /** Problem type of RFC 9457. `about:blank` means that the status says everything. */
  readonly type: string;
  /** Fields of every reply with this code, alternating names and values. */
  readonly headers: readonly string[];
  /** Heading of the page for browsers. Unset: the title. */
  readonly heading?: string;
  /** Sentence of that page. Unset: the message of the JSON reply. */
  readonly sentence?: string;
}

/** Retry-After for clients on the list `deny`. Lists are edited from time to time. */
export const DENIED_SECONDS: Seconds = 3600;

/** Retry-After of bounds and outages. They have no window, so clients are told to retry soon. */
export const RETRY_SECONDS: Seconds = 1;

const BLANK = 'about:blank';
/** Problem types of draft-ietf-httpapi-ratelimit-headers-11. */
const DRAFT = 'https://iana.org/assignments/http-problem-types#';
/** Problem type of limits, after which the client may wait. */
export const QUOTA_EXCEEDED = `${DRAFT}quota-exceeded`;
const REDUCED_CAPACITY = `${DRAFT}temporary-reduced-capacity`;
const ABNORMAL_USAGE = `${DRAFT}abnormal-usage-detected`;

const NONE: readonly string[] = [];
const MARK: readonly string[] = [RATELIMITED_HEADER, 'true'];
const RETRY: readonly string[] = ['Retry-After', String(RETRY_SECONDS)];

/** All clients of a group together have reached the limit of a policy. */
const GROUP_CODES = Object.fromEntries(
  GROUPS.map(({ code, heading, sentence }) => [
    code,
    { status: 429, title: 'Too Many Requests', type: QUOTA_EXCEEDED, headers: MARK, heading, sentence },
  ]),
) as Readonly<Record<GroupCode, CodeRow>>;

export const CODES: Readonly<Record<ErrorCode, CodeRow>> = {
  ...GROUP_CODES,
  gateway_bad_request: {
    status: 400,
    title: 'Bad Request',
    type: BLANK,
    headers: NONE,
    heading: 'This request cannot be answered',
  },
  gateway_method_not_allowed: {
    status: 405,
    title: 'Method Not Allowed',
    type: BLANK,
    headers: ['Allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'],
  },
  gateway_request_timeout: { status: 408, title: 'Request Timeout', type: BLANK, headers: NONE },
  gateway_header_too_large: {
    status: 431,
    title: 'Request Header Fields Too Large',
    type: BLANK,
    headers: NONE,
  },
  gateway_rate_limited: {
    status: 429,
    title: 'Too Many Requests',
    type: QUOTA_EXCEEDED,
    headers: MARK,
    heading: 'Too many requests',
    sentence: 'The limit of this site is reached.',
  },
  /** An operator or a policy has banned the client or its credential. 429, because survey widgets lose answers on 403. */
  gateway_banned: {
    status: 429,
    title: 'Too Many Requests',
    type: ABNORMAL_USAGE,
    headers: MARK,
    heading: 'Blocked for a while',
    sentence: 'The operator of this site has blocked requests from you for a while.',
  },
  /** The policy file's list deny names the client or the route. */
  gateway_denied: {
    status: 429,
    title: 'Too Many Requests',
    type: ABNORMAL_USAGE,
    headers: [...MARK, 'Retry-After', String(DENIED_SECONDS)],
    heading: 'Not allowed',
  },
  gateway_forbidden: {
    status: 403,
    title: 'Forbidden',
    type: ABNORMAL_USAGE,
    headers: NONE,
    heading: 'Not allowed',
  },
  /** The client has reached its share of a bound. No policy denies the request. */
  gateway_client_busy: {
    status: 429,
    title: 'Too Many Requests',
    type: ABNORMAL_USAGE,
    headers: RETRY,
    heading: 'Too much at once',
    sentence: 'Too many requests from you are in progress. Wait until some have ended.',
  },
  gateway_store_unavailable: {
    status: 503,
    title: 'Service Unavailable',
    type: REDUCED_CAPACITY,
    headers: RETRY,
    heading: 'Please wait a moment',
    sentence: 'This site cannot check its limits at the moment.',
  },
  gateway_overloaded: {
    status: 503,
    title: 'Service Unavailable',
    type: REDUCED_CAPACITY,
    headers: RETRY,
    heading: 'Please wait a moment',
    sentence: 'This site is very busy at the moment.',
  },
  gateway_upstream_unavailable: {
    status: 502,
    title: 'Bad Gateway',
    type: BLANK,
    headers: NONE,
    heading: 'This site cannot be reached',
    sentence: 'It does not answer at the moment. Try again in a few minutes.',
  },
  gateway_upstream_timeout: {
    status: 504,
    title: 'Gateway Timeout',
    type: BLANK,
    headers: NONE,
    heading: 'No answer in time',
    sentence: 'This site takes too long to answer. Try again in a few minutes.',
  },
};
