/**
 * Answers preflights (https://fetch.spec.whatwg.org/#http-cors-protocol) of refused clients. With a refusal, the
 * browser would not send the request itself, and the page would see a network error instead of the 429. The permission
 * is worth little: only pages of origins with `credentials: true` may send cookies, and the gateway decides about their
 * request as about any other.
 */

import { valuesOf } from '#gateway/http/header-fields.ts';
import { DECISION_HEADER } from '#gateway/http/header-names.ts';
import { REQUEST_METHOD } from './cors.ts';
import type { Framing, OwnReply } from './own-reply.ts';

const ALLOW_METHODS = 'Access-Control-Allow-Methods';
const ALLOW_HEADERS = 'Access-Control-Allow-Headers';
/** The asterisk does not cover Authorization. */
const ALL: readonly string[] = [ALLOW_METHODS, '*', ALLOW_HEADERS, '*, Authorization'];

/** One or more tokens (RFC 9110 5.6.2), with commas between them. */
const TOKENS = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+(?:[ \t]*,[ \t]*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*$/;

/** @param rawHeaders alternating names and values */
export function isPreflight(method: string | undefined, rawHeaders: readonly string[]): boolean {
  return (
    method === 'OPTIONS' &&
    valuesOf(rawHeaders, 'origin').length > 0 &&
    valuesOf(rawHeaders, REQUEST_METHOD).length > 0
  );
}

/** @param rawHeaders of the preflight */
export function preflightReply(
  { decision, cors, close }: Omit<Framing, 'page'>,
  rawHeaders: readonly string[],
): OwnReply {
  const headers = cors.credentials ? askedFor(rawHeaders) : [...ALL];
  if (decision !== null) headers.push(DECISION_HEADER, decision);
  return { status: 204, title: 'No Content', body: '', headers, cors, close };
}

/** For requests with cookies, browsers take an asterisk for a name. So allow what the preflight asks for. */
function askedFor(rawHeaders: readonly string[]): string[] {
  return [
    [ALLOW_METHODS, REQUEST_METHOD],
    [ALLOW_HEADERS, 'access-control-request-headers'],
  ].flatMap(([allow = '', asked = '']) =>
    valuesOf(rawHeaders, asked)
      .filter((value) => TOKENS.test(value))
      .flatMap((value) => [allow, value]),
  );
}
