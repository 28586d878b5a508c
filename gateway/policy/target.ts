/**
 * One canonical path: what is matched is what is forwarded, so gateway and upstream can never read
 * the same bytes as two different routes. Targets that two servers could read differently are refused, not guessed.
 * No URL class here: it repairs, and a repaired target is no longer the one that the client sent.
 */

export interface Target {
  readonly ok: true;
  /** Absolute path, percent-decoded once for unreserved characters, without dot segments, empty segments or a trailing slash. */
  readonly path: string;
  /** `?` and what follows, as sent; '' when there is none. */
  readonly query: string;
  /** The path was sent with one trailing slash, which matching ignores. */
  readonly trailingSlash: boolean;
}

interface BadTarget {
  readonly ok: false;
  /** What is wrong, fit for the caller. */
  readonly reason: string;
}

const bad = (reason: string): BadTarget => ({ ok: false, reason });

/** Code units that a path may carry without a second look: unreserved, sub-delims, `:` and `@`, except `.` and `%`. */
const PLAIN = new Uint8Array(256);
for (const char of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~!$&'()*+,;=:@") {
  PLAIN[char.charCodeAt(0)] = 1;
}
const UNRESERVED = /[A-Za-z0-9\-._~]/;

const SLASH = 47;
const QUESTION = 63;

/**
 * @param raw the request target as it stood in the request line, one code unit a byte (latin1)
 * @returns the canonical target, or why it is refused
 */
export function canonicalTarget(raw: string): Target | BadTarget {
  if (raw.charCodeAt(0) === SLASH) return canonicalOrigin(raw);
  // Absolute form (RFC 9112 3.2.2): the authority is the Host header's business, the path is ours.
  const absolute = /^https?:\/\/[^/?#\\]+/i.exec(raw);
  if (absolute === null) return bad('the request target must be a path that begins with /');
  const rest = raw.slice(absolute[0].length);
  return canonicalOrigin(rest.startsWith('/') ? rest : `/${rest}`);
}

function canonicalOrigin(raw: string): Target | BadTarget {
  // The usual target needs no rewriting at all: one pass that copies nothing.
  let previous = SLASH;
  let i = 1;
  for (; i < raw.length; i++) {
    const code = raw.charCodeAt(i);
    if (PLAIN[code] !== 1) {
      if (code === QUESTION) break;
      // A dot is harmless unless it begins a segment; a slash unless it follows another.
      if ((code === SLASH || code === 46) && previous !== SLASH) {
        previous = code;
        continue;
      }
      return rewrite(raw);
    }
    previous = code;
  }
  const query = i < raw.length ? raw.slice(i) : '';
  if (query !== '' && BAD_QUERY.test(query)) return bad(QUERY_REASON);
  const trailingSlash = previous === SLASH && i > 1;
  return { ok: true, path: raw.slice(0, trailingSlash ? i - 1 : i), query, trailingSlash };
}

/** Anything but visible ASCII and raw bytes beyond it, and of the visible ones `#` and the backslash. */
const BAD_QUERY = /[^!-~\x80-\xff]|[#\\]/;
const QUERY_REASON = 'the request target contains a control character, a space, # or \\; percent-encode it';

function rewrite(raw: string): Target | BadTarget {
  const mark = raw.indexOf('?');
  const sent = mark < 0 ? raw : raw.slice(0, mark);
  const query = mark < 0 ? '' : raw.slice(mark);
  if (BAD_QUERY.test(raw)) return bad(QUERY_REASON);

  const decoded = decodeUnreserved(sent);
  if (typeof decoded !== 'string') return decoded;

  const segments = decoded.split('/');
  const path = resolved(segments);
  const last = segments.at(-1);
  const trailingSlash = path !== '/' && (last === '' || last === '.' || last === '..');
  return { ok: true, path, query, trailingSlash };
}

/** Joins what is left once dot segments are followed and empty ones dropped; the first one stands before the path. */
function resolved(segments: readonly string[]): string {
  const kept: string[] = [];
  for (let i = 1; i < segments.length; i++) {
    const segment = segments[i] ?? '';
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(segment);
  }
  return `/${kept.join('/')}`;
}

/** Decodes %41 to A but leaves %20 and %C3 as they are, in upper case; raw bytes beyond ASCII become %XX. */
function decodeUnreserved(path: string): string | BadTarget {
  let out = '';
  for (let i = 0; i < path.length; i++) {
    const code = path.charCodeAt(i);
    if (code >= 0x80) {
      out += hex(code);
      continue;
    }
    const char = path.charAt(i);
    if (char !== '%') {
      out += char;
      continue;
    }
    const digits = path.slice(i + 1, i + 3);
    if (!/^[0-9A-Fa-f]{2}$/.test(digits))
      return bad('the path contains a % that is not followed by two hex digits');
    const byte = Number.parseInt(digits, 16);
    i += 2;
    if (byte < 0x20 || byte === 0x7f) return bad('the path contains an encoded control character');
    if (byte === 0x2f) return bad('the path contains an encoded slash (%2F)');
    if (byte === 0x5c) return bad('the path contains an encoded backslash (%5C)');
    const decoded = String.fromCharCode(byte);
    out += UNRESERVED.test(decoded) ? decoded : hex(byte);
  }
  // Judged on the result, so that %25%36%31 is caught as well as %2561: both would decode again to another path.
  if (/%25[0-9A-Fa-f]{2}/.test(out)) return bad('the path is percent-encoded twice');
  return out;
}

function hex(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

/**
 * The same path as a server reads it that strips segment parameters (`/a;b=c/d` is `/a/d`), or null when the path has
 * none. Such a server also sees `/a/..;/b` as `/b`. Policies are matched on both readings.
 */
export function withoutSegmentParameters(path: string): string | null {
  if (!path.includes(';') && !path.includes('%3B')) return null;
  return resolved(path.split('/').map(withoutParameters));
}

export function withoutParameters(segment: string): string {
  return segment.replace(SEGMENT_PARAMETERS, '');
}

const SEGMENT_PARAMETERS = /(?:;|%3B).*$/;

/**
 * What a segment of a canonical path stands for, byte by byte. Only unreserved characters have one canonical spelling:
 * `@me` and `%40me` go to the upstream as they came, and many upstreams read them as the same.
 */
export function meaningOf(segment: string): string {
  if (!segment.includes('%')) return segment;
  return segment.replace(/%([0-9A-F]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}

/**
 * Gives texts that differ only in case one form. Upper case decides, as it does in ASP.NET: the two small sigmas are one.
 *
 * @param bytes the meaning of a segment, one code unit a byte
 */
export function caseless(bytes: string): string {
  if (!BEYOND_ASCII.test(bytes)) return bytes.toLowerCase();
  const text = Buffer.from(bytes, 'latin1').toString('utf8');
  return Buffer.from(text.toUpperCase().toLowerCase(), 'utf8').toString('latin1');
}

const BEYOND_ASCII = /[\x80-\xff]/;
