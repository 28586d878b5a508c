/**
 * Makes the replies of refusals. Their bodies are problem+json (RFC 9457) or pages. Existing clients expect the members
 * `message` (string) and `details` (object).
 */
import { DECISION_HEADER } from '#gateway/http/header-names.ts';
import { CODES, type ErrorCode } from '#gateway/refusals/codes.ts';
import { reasonOf } from '#gateway/refusals/reasons.ts';
import type { Refusal } from '#gateway/refusals/refusal.ts';
import { UNREAD } from './cors.ts';
import { limitHeaders } from './limit-headers.ts';
import type { Framing, OwnReply } from './own-reply.ts';
import { OWN_PAGE } from './page.ts';

/**
 * @param more header fields behind those of the code, alternating names and values
 * @param extra further members of the body
 * @param policy names of the denying policies
 */
export function ownReply(
  code: ErrorCode,
  message: string,
  { cors, close, decision, page }: Framing,
  more: readonly string[] = [],
  extra: object = {},
  policy = '',
): OwnReply {
  const { status, title } = CODES[code];
  const headers = [...CODES[code].headers, ...more];
  if (decision !== null) headers.push(DECISION_HEADER, decision);
  if (page === null) {
    const body = problemBody(code, message, decision === null ? extra : { ...extra, decision });
    headers.unshift('Content-Type', 'application/problem+json');
    return { status, title, body: bytesOf(body), headers, cors, close };
  }
  const waitAt = headers.indexOf('Retry-After') + 1;
  const seconds = waitAt === 0 ? null : Number(headers[waitAt]);
  // An operator's page shows the time to wait. Without a time, use the gateway's own page.
  const fitting = seconds === null ? OWN_PAGE : page;
  const body = bytesOf(fitting.contentOf({ code, message, seconds, decision, policy }));
  headers.unshift('Content-Type', 'text/html; charset=utf-8');
  return { status, title, body, headers: [...headers, ...fitting.headers], cors, close };
}

/** @param extra further members */
function problemBody(code: ErrorCode, message: string, extra: object): string {
  const { status, title, type } = CODES[code];
  const body = JSON.stringify({ type, title, status, detail: message, code, message, details: {}, ...extra });
  // JSON text may contain DEL. A header field, which may carry the body, must not.
  return body.replaceAll('\x7f', '\\u007f');
}

const bytesOf = (text: string): string => Buffer.from(text).toString('latin1');

/** Answers a refused request, by what its client is told. @param added the headers of an admitted request */
export function refusalReply(refusal: Refusal, framing: Framing, added: readonly string[] = []): OwnReply {
  const reason = reasonOf(refusal);
  const told = reason.told(refusal, framing.cors.isClientRoute);
  const { text, code = reason.code, retryAfter, limits, policies, extra } = told;
  const wait = retryAfter === undefined ? [] : ['Retry-After', String(retryAfter)];
  const headers = [...added, ...wait, ...limitHeaders(limits ?? [])];
  return ownReply(code, text, framing, headers, extra, policies?.join(', '));
}

/** Answers bytes that could not be read as a request. The writer of the reply looks for the origin of the page. */
export function unreadReply({ code, text }: { readonly code: ErrorCode; readonly text: string }): OwnReply {
  return ownReply(code, text, { cors: UNREAD, close: true, decision: null, page: null });
}
