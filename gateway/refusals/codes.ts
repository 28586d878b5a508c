/**
 * Lists the codes of the gateway's own replies, with the status, headers and words of each. No code is
 * `too_many_requests`: clients know that one as the application's.
 */

import { RATELIMITED_HEADER } from '#gateway/http/header-names.ts';
import { STATUS_CODES } from '#gateway/http/node-http.ts';
import { GROUPS, type GroupCode } from '#gateway/policy/groups.ts';
import type { Seconds } from '#shared/clock.ts';

interface BriefRow {
  readonly status: number;
  /** Problem type of RFC 9457. Unset: `about:blank`, which means that the status says everything. */
  readonly type?: string;
  /** Fields of every reply with this code, alternating names and values. */
  readonly headers?: readonly string[];
  /** Heading of the page for browsers. Unset: the title of the status. */
  readonly heading?: string;
  /** Sentence of that page. Unset: the message of the JSON reply. */
  readonly sentence?: string;
}

type CodeRow = BriefRow & Required<Omit<BriefRow, 'sentence'>> & { readonly title: string };

/** Retry-After for clients on the list `deny`. Lists are edited from time to time. */
export const DENIED_SECONDS: Seconds = 3600;

/** Retry-After of bounds and outages. They have no window, so clients are told to retry soon. */
export const RETRY_SECONDS: Seconds = 1;

/** Problem types of draft-ietf-httpapi-ratelimit-headers-11. */
const DRAFT = 'https://iana.org/assignments/http-problem-types#';
/** Problem type of limits, after which the client may wait. */
export const QUOTA_EXCEEDED = `${DRAFT}quota-exceeded`;
const ABNORMAL_USAGE = `${DRAFT}abnormal-usage-detected`;

const MARK: readonly string[] = [RATELIMITED_HEADER, 'true'];
const RETRY: readonly string[] = ['Retry-After', String(RETRY_SECONDS)];

const LIMIT = { status: 429, type: QUOTA_EXCEEDED, headers: MARK };
const BUSY = {
  status: 503,
  type: `${DRAFT}temporary-reduced-capacity`,
  headers: RETRY,
  heading: 'Please wait a moment',
};

const ROWS = {
  gateway_bad_request: { status: 400, heading: 'This request cannot be answered' },
  gateway_method_not_allowed: {
    status: 405,
    headers: ['Allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'],
  },
  gateway_request_timeout: { status: 408 },
  gateway_header_too_large: { status: 431 },
  gateway_rate_limited: {
    ...LIMIT,
    heading: 'Too many requests',
    sentence: 'The limit of this site is reached.',
  },
  /** An operator or a policy has banned the client or its credential. 429, because survey widgets lose answers on 403. */
  gateway_banned: {
    status: 429,
    type: ABNORMAL_USAGE,
    headers: MARK,
    heading: 'Blocked for a while',
    sentence: 'The operator of this site has blocked requests from you for a while.',
  },
  /** The policy file's list deny names the client or the route. */
  gateway_denied: {
    status: 429,
    type: ABNORMAL_USAGE,
    headers: [...MARK, 'Retry-After', String(DENIED_SECONDS)],
    heading: 'Not allowed',
  },
  gateway_forbidden: { status: 403, type: ABNORMAL_USAGE, heading: 'Not allowed' },
  /** The client has reached its share of a bound. No policy denies the request. */
  gateway_client_busy: {
    status: 429,
    type: ABNORMAL_USAGE,
    headers: RETRY,
    heading: 'Too much at once',
    sentence: 'Too many requests from you are in progress. Wait until some have ended.',
  },
  gateway_store_unavailable: { ...BUSY, sentence: 'This site cannot check its limits at the moment.' },
  gateway_overloaded: { ...BUSY, sentence: 'This site is very busy at the moment.' },
  gateway_upstream_unavailable: {
    status: 502,
    heading: 'This site cannot be reached',
    sentence: 'It does not answer at the moment. Try again in a few minutes.',
  },
  gateway_upstream_timeout: {
    status: 504,
    heading: 'No answer in time',
    sentence: 'This site takes too long to answer. Try again in a few minutes.',
  },
} as const satisfies Readonly<Record<string, BriefRow>>;

export type ErrorCode = keyof typeof ROWS | GroupCode;

function codeRow(row: BriefRow): CodeRow {
  const title = STATUS_CODES[row.status] ?? '';
  return { title, type: 'about:blank', headers: [], heading: title, ...row };
}

export const CODES = Object.fromEntries([
  // All clients of a group together have reached the limit of a policy.
  ...GROUPS.map(({ code, heading, sentence }) => [code, codeRow({ ...LIMIT, heading, sentence })]),
  ...Object.entries(ROWS).map(([code, row]) => [code, codeRow(row)]),
]) as Readonly<Record<ErrorCode, CodeRow>>;
