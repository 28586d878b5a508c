/** Header sections of HTTP/2 as HTTP/1.1 has them, and back (RFC 9113 8). */

interface Http1Head {
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

/** Of what frames a reply there is one. */
const SINGLE = new Set(['content-length', 'content-type', 'date']);

/**
 * @param fields names and values in turn
 * @returns the same, as node:http2 takes them: what stands there several times is passed on so
 */
export function replyHead(status: number, fields: readonly string[]): string[] {
  const headers = [':status', String(status)];
  const known = new Set<string>();
  for (let i = 0; i < fields.length; i += 2) {
    const name = (fields[i] ?? '').toLowerCase();
    if (HOP_BY_HOP.has(name) || (SINGLE.has(name) && known.has(name))) continue;
    // Its body is left out (RFC 9110 15.3.6).
    if (status === 205 && name === 'content-length') continue;
    known.add(name);
    headers.push(name, fields[i + 1] ?? '');
  }
  return headers;
}
