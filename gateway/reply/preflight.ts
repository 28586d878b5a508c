/**
 * Answers preflights (https://fetch.spec.whatwg.org/#http-cors-protocol) of refused clients. With a refusal, the
 * browser would not send the request itself, and the page would see a network error instead of the 429. The permission
 * is worth little: only pages of origins with `credentials: true` may send cookies, and the gateway decides about their
 * request as about any other.
 */
import type { WritableResponse } from '#gateway/http/client-exchange.ts';
import { DECISION_HEADER } from '#gateway/http/header-names.ts';
import type { Cors } from './cors.ts';
import { type AnsweredRequest, sendBody } from './own-reply.ts';

const ALLOW_METHODS = 'Access-Control-Allow-Methods';
const ALLOW_HEADERS = 'Access-Control-Allow-Headers';

interface PreflightOptions {
  /** Id of the refusal; null if it has none. */
  readonly decision: string | null;
  readonly cors: Cors;
}

/** The asterisk does not cover Authorization. */
const ALL: readonly string[] = [ALLOW_METHODS, '*', ALLOW_HEADERS, '*, Authorization'];

/** One or more tokens (RFC 9110 5.6.2), with commas between them. */
const TOKENS = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+(?:[ \t]*,[ \t]*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*$/;

/** @param rawHeaders alternating names and values */
export function isPreflight(method: string | undefined, rawHeaders: readonly string[]): boolean {
  if (method !== 'OPTIONS') return false;
  let hasOrigin = false;
  let hasMethod = false;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase();
    if (name === 'origin') hasOrigin = true;
    else if (name === 'access-control-request-method') hasMethod = true;
  }
  return hasOrigin && hasMethod;
}

/**
 * Returns the headers of the reply, as alternating names and values.
 *
 * @param rawHeaders of the preflight
 */
export function preflightHeaders(
  { decision, cors }: PreflightOptions,
  rawHeaders: readonly string[],
): string[] {
  const allowed = cors.credentials ? askedFor(rawHeaders) : ALL;
  const headers = [...cors.headers, ...allowed, 'Cache-Control', 'no-store'];
  return decision === null ? headers : [...headers, DECISION_HEADER, decision];
}

/** For requests with cookies, browsers take an asterisk for a name. So allow what the preflight asks for. */
function askedFor(rawHeaders: readonly string[]): string[] {
  const allowed: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = [rawHeaders[i]?.toLowerCase(), rawHeaders[i + 1]];
    if (!TOKENS.test(value)) continue;
    if (name === 'access-control-request-method') allowed.push(ALLOW_METHODS, value);
    else if (name === 'access-control-request-headers') allowed.push(ALLOW_HEADERS, value);
  }
  return allowed;
}

export function sendPreflight(
  req: AnsweredRequest & { readonly rawHeaders: readonly string[] },
  res: WritableResponse,
  framing: PreflightOptions & { readonly close: boolean },
): void {
  if (res.headersSent || res.destroyed) return;
  const headers = preflightHeaders(framing, req.rawHeaders);
  if (framing.close) {
    res.shouldKeepAlive = false;
    headers.push('Connection', 'close');
  }
  res.writeHead(204, headers);
  sendBody(req, res, framing.close, '');
}
