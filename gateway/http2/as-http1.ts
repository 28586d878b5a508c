/** Header sections of HTTP/2 as HTTP/1.1 has them, and back (RFC 9113 8). */
import type { OutgoingHttpHeaders } from 'node:http';

export interface Http1Head {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

/** Of one connection, which ends here. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/**
 * @param fields names and values in turn, as they came
 * @param hasBody frames with data may follow
 * @returns null: it is no request for a resource
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
        // Clients may send each of them in a field of its own (8.2.3).
        cookies += cookies === '' ? value : `; ${value}`;
        break;
      default:
        if (name.startsWith(':') || HOP_BY_HOP.has(name)) break;
        hasLength ||= name === 'content-length';
        headers.push(name, value);
    }
  }
  if (method === '' || method === 'CONNECT' || target === '') return null;
  if (cookies !== '') headers.push('cookie', cookies);
  headers.push('host', authority ?? host ?? '');
  if (hasBody && !hasLength) headers.push('transfer-encoding', 'chunked');
  headers.push('connection', 'close');
  return { method, target, headers };
}

/** Of which HTTP/2 knows one only. */
const SINGLE = new Set([
  'content-length',
  'content-type',
  'date',
  'etag',
  'last-modified',
  'location',
  'retry-after',
]);

/** @param fields names and values in turn */
export function replyHead(status: number, fields: readonly string[]): OutgoingHttpHeaders {
  const headers: Record<string, string | string[] | number> = { ':status': status };
  for (let i = 0; i < fields.length; i += 2) {
    const name = (fields[i] ?? '').toLowerCase();
    const value = fields[i + 1] ?? '';
    if (HOP_BY_HOP.has(name)) continue;
    const known = headers[name];
    if (known === undefined) headers[name] = value;
    else if (Array.isArray(known)) known.push(value);
    else if (!SINGLE.has(name)) headers[name] = [String(known), value];
  }
  return headers;
}
