/**
 * Answers preflights (https://fetch.spec.whatwg.org/#http-cors-protocol) of refused clients. With a refusal, the
 * browser would not send the request itself, and the page would see a network error instead of the 429. The permission
 * is worth little: the page may send no cookies, and the gateway decides about its request as about any other.
 */
import type { WritableResponse } from '#gateway/http/client-exchange.ts';
import { CORS_HEADERS, DECISION_HEADER } from '#gateway/http/header-names.ts';
import type { Framing } from './denial.ts';
import { type AnsweredRequest, sendBody } from './own-reply.ts';

const HEADERS: readonly string[] = [
  ...CORS_HEADERS,
  'Access-Control-Allow-Methods',
  '*',
  'Access-Control-Allow-Headers',
  // The asterisk does not cover Authorization.
  '*, Authorization',
  'Cache-Control',
  'no-store',
];

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

/** Returns the headers of the reply, as alternating names and values. */
export function preflightHeaders({ decision }: Pick<Framing, 'decision'>): string[] {
  return decision === null ? [...HEADERS] : [...HEADERS, DECISION_HEADER, decision];
}

export function sendPreflight(
  req: AnsweredRequest,
  res: WritableResponse,
  framing: Pick<Framing, 'decision' | 'close'>,
): void {
  if (res.headersSent || res.destroyed) return;
  const headers = preflightHeaders(framing);
  if (framing.close) {
    res.shouldKeepAlive = false;
    headers.push('Connection', 'close');
  }
  res.writeHead(204, headers);
  sendBody(req, res, framing.close, '');
}
