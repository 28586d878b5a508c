/** Formats the head of a request to the upstream (RFC 9112). */
import type { UpstreamRequest } from './exchange.ts';

/** Methods that need `Content-Length: 0` without a body (RFC 9110 8.6). */
const EXPECTS_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
const TARGET = /^[\x21-\x7e\x80-\xff]+$/;
/** Characters that would end a field, or that would be cut to another one when the text is written in latin1. */
const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/;

/** @returns null if the request cannot be sent safely */
export function headOf({
  method,
  target,
  headers,
  body,
  contentLength,
  upgrade,
}: UpstreamRequest): string | null {
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
