/** Translates header sections between HTTP/2 and HTTP/1.1 (RFC 9113 8). */

import { HOP_BY_HOP } from '#gateway/http/hop-by-hop.ts';
import { haveSameHost } from '#gateway/http/host.ts';

interface Http1Head {
  readonly method: string;
  readonly target: string;
  /** Alternating names and values. */
  readonly headers: readonly string[];
}

const DROPPED: ReadonlySet<string> = new Set([...HOP_BY_HOP, 'http2-settings']);

/**
 * @param fields alternating names and values
 * @param hasBody DATA frames may follow
 * @returns null if the request is a CONNECT, or has no method or path
 */
export function requestHead(fields: readonly string[], hasBody: boolean): Http1Head | null {
  let method = '';
  let target = '';
  let authority: string | null = null;
  let host: string | null = null;
  let cookies = '';
  let hasLength = false;
  const headers: string[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const [name = '', value = ''] = [fields[i], fields[i + 1]];
    switch (name) {
      case ':method':
        method = value;
        break;
      case ':path':
        target = value;
        break;
      case ':authority':
        authority = value;
        break;
      case 'host':
        host = value;
        break;
      case 'cookie':
        // Clients may send each cookie in its own field (8.2.3).
        cookies += cookies === '' ? value : `; ${value}`;
        break;
      default:
        if (name.startsWith(':') || DROPPED.has(name)) break;
        hasLength ||= name === 'content-length';
        headers.push(name, value);
    }
  }
  if (method === '' || method === 'CONNECT' || target === '') return null;
  if (cookies !== '') headers.push('cookie', cookies);
  headers.push('host', authority ?? host ?? '');
  // The listener refuses a request with two Host fields, so one whose fields disagree is malformed (8.3.1).
  if (authority !== null && host !== null && !haveSameHost(authority, host)) headers.push('host', host);
  if (hasBody && !hasLength) headers.push('transfer-encoding', 'chunked');
  headers.push('connection', 'close');
  return { method, target, headers };
}

/** Fields that a reply has at most once. */
const SINGLE = new Set(['content-length', 'content-type', 'date']);

/**
 * @param fields alternating names and values
 * @returns the same for node:http2; repeated fields stay repeated
 */
export function replyHead(status: number, fields: readonly string[]): string[] {
  const headers = [':status', String(status)];
  const known = new Set<string>();
  for (let i = 0; i < fields.length; i += 2) {
    const name = (fields[i] ?? '').toLowerCase();
    if (DROPPED.has(name) || (SINGLE.has(name) && known.has(name))) continue;
    // A 205 has no body (RFC 9110 15.3.6).
    if (status === 205 && name === 'content-length') continue;
    known.add(name);
    headers.push(name, fields[i + 1] ?? '');
  }
  return headers;
}
