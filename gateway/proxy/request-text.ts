/** The request as it is sent to the upstream, and the text of its head (RFC 9112). */
import type { ForwardedRequest, Passage } from './forwarded-request.ts';
import { type BodyOwner, Upload } from './upload.ts';

export interface UpstreamRequest {
  readonly method: string;
  /** Canonical path and query. */
  readonly target: string;
  /** Alternating names and values, without those of the connection and of the body's length. */
  readonly headers: readonly string[];
  /** A buffer has the announced length. null without a body. */
  readonly body: Buffer | Upload | null;
  /** The length that the client has announced; null if it has not, and then a body is sent in chunks. */
  readonly contentLength: number | null;
  /** Protocols to switch to, as the client has offered them; null if none. */
  readonly upgrade: string | null;
}

interface Call extends BodyOwner {
  readonly request: ForwardedRequest;
  readonly passage: Passage;
}

/** A body that has arrived is sent as a buffer, in one write. */
export function requestToSend(call: Call): UpstreamRequest {
  const { req, match, head, options } = call.request;
  const { contentLength } = head;
  const body = head.hasBody ? req.body : null;
  const isThere = body?.complete === true && contentLength === body.waitingBytes;
  return {
    method: req.method ?? 'GET',
    target: match.target,
    headers: call.passage.headers,
    body: isThere ? body.look() : body && new Upload(body, call),
    contentLength,
    upgrade: options.upgrade?.protocol ?? null,
  };
}

/** Methods that need `Content-Length: 0` without a body (RFC 9110 8.6). */
const EXPECTS_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
const TARGET = /^[\x21-\x7e\x80-\xff]+$/;
/** Characters that would end a field, or that would be cut to another one when the text is written in latin1. */
const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/;

/** @returns null if the request cannot be sent safely */
export function headOf(request: UpstreamRequest): string | null {
  const { method, target, headers, body, contentLength, upgrade } = request;
  if (!TARGET.test(target)) return null;
  let head = `${method} ${target} HTTP/1.1\r\n`;
  for (let i = 0; i < headers.length; i += 2) {
    const field = `${headers[i]}: ${headers[i + 1]}`;
    if (UNSENDABLE.test(field)) return null;
    head += `${field}\r\n`;
  }
  const length = contentLength ?? (body === null && EXPECTS_BODY.has(method) ? 0 : null);
  if (length !== null) head += `Content-Length: ${length}\r\n`;
  else if (body !== null) head += 'Transfer-Encoding: chunked\r\n';
  return `${head}Connection: ${upgrade === null ? 'keep-alive' : `upgrade\r\nUpgrade: ${upgrade}`}\r\n\r\n`;
}
