/** Formats the head of a request to an `http:` upstream (RFC 9112). */
import type { UpstreamRequest } from './exchange.ts';

/** Methods that need `Content-Length: 0` without a body (RFC 9110 8.6). */
const EXPECTS_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
/** Request targets that can be sent. undici and node:http refuse all others too. */
const TARGET = /^[\x21-\x7e\x80-\xff]+$/;

/** @returns null if the request cannot be sent safely */
export function headOf({ method, target, headers, body }: UpstreamRequest, authority: string): string | null {
  if (!TARGET.test(target)) return null;
  let head = `${method} ${target} HTTP/1.1\r\n`;
  // If there is a Host, it is the first field.
  if (headers[0] !== 'Host') head += `Host: ${authority}\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  if (!hasLength({ headers })) {
    if (body === null) {
      if (EXPECTS_BODY.has(method)) head += 'Content-Length: 0\r\n';
    } else
      head += Buffer.isBuffer(body) ? `Content-Length: ${body.length}\r\n` : 'Transfer-Encoding: chunked\r\n';
  }
  return `${head}Connection: keep-alive\r\n\r\n`;
}

export function hasLength({ headers }: Pick<UpstreamRequest, 'headers'>): boolean {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === 'Content-Length') return true;
  return false;
}
