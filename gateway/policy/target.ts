/**
 * Brings a request target into canonical form. The gateway forwards the path that it matched, so the gateway and the
 * upstream cannot disagree about the route. It refuses targets that two servers could read differently. The URL class
 * is not used because it repairs targets silently.
 */

interface Target {
  readonly ok: true;
  /**
   * Absolute. Unreserved characters are decoded once; dot segments, empty segments and a trailing slash are removed.
   */
  readonly path: string;
  /** The question mark and the query, as sent; empty if there is no query. */
  readonly query: string;
  /** Whether the path was sent with a trailing slash. Matching ignores it. */
  readonly trailingSlash: boolean;
}

interface BadTarget {
  readonly ok: false;
  readonly reason: string;
}

const bad = (reason: string): BadTarget => ({ ok: false, reason });

/** Characters that need no rewriting: unreserved, sub-delims, `:` and `@`, but not `.` and `%`. */
const PLAIN = new Uint8Array(256);
for (const char of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~!$&'()*+,;=:@") {
  PLAIN[char.charCodeAt(0)] = 1;
}
const UNRESERVED = /[A-Za-z0-9\-._~]/;

const SLASH = 47;
const QUESTION = 63;
/** The absolute form (RFC 9112 3.2.2). */
const ABSOLUTE = /^https?:\/\/([^/?#\\]+)/i;

/**
 * @param raw from the request line, decoded as latin1, so each code unit stands for one byte
 * @returns the canonical target, or the reason for a refusal
 */
export function canonicalTarget(raw: string): Target | BadTarget {
  if (raw.charCodeAt(0) === SLASH) return canonicalOrigin(raw);
  // Only the path of the absolute form is matched here; `authorityOf` returns the rest.
  const absolute = ABSOLUTE.exec(raw);
  if (absolute === null) return bad('the request target must be a path that begins with /');
  const rest = raw.slice(absolute[0].length);
  return canonicalOrigin(rest.startsWith('/') ? rest : `/${rest}`);
}

/** @returns the host and port of a target in absolute form; null if the target is a path */
export function authorityOf(raw: string): string | null {
  return raw.charCodeAt(0) === SLASH ? null : (ABSOLUTE.exec(raw)?.[1] ?? null);
}

function canonicalOrigin(raw: string): Target | BadTarget {
  // Fast path: most targets are canonical already, so one pass without copying is enough.
  let previous = SLASH;
  let i = 1;
  for (; i < raw.length; i++) {
    const code = raw.charCodeAt(i);
    if (PLAIN[code] !== 1) {
      if (code === QUESTION) break;
      // Only a dot at the start of a segment and a slash behind a slash need rewriting.
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

/** Matches all but visible ASCII and bytes from 0x80, and also `#` and the backslash. */
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

function resolved(segments: readonly string[]): string {
  const kept: string[] = [];
  for (let i = 1; i < segments.length; i++) {
    const segment = segments[i] ?? '';
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(segment);
  }
  return `/${kept.join('/')}`;
}

/** Decodes only unreserved characters (%41 becomes A). Others stay encoded, with upper-case hex digits. */
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
  // The result is checked, not the input: %25%36%31 is double encoding as well as %2561.
  if (/%25[0-9A-Fa-f]{2}/.test(out)) return bad('the path is percent-encoded twice');
  return out;
}

function hex(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

/**
 * Some servers strip segment parameters: they read `/a;b=c/d` as `/a/d` and `/a/..;/b` as `/b`. Policies are matched on
 * both readings.
 *
 * @returns the path as such a server reads it; null if it has no parameters
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
 * Decodes a segment of a canonical path completely, to one code unit for each byte. `@me` and `%40me` are forwarded as
 * sent, but many upstreams treat them as equal, so routes must too.
 */
export function meaningOf(segment: string): string {
  if (!segment.includes('%')) return segment;
  return segment.replace(/%([0-9A-F]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}

/**
 * Folds case. It converts to upper case, as ASP.NET does, so that both small sigmas become equal.
 *
 * @param bytes result of meaningOf; each code unit stands for one byte
 */
export function caseless(bytes: string): string {
  if (!BEYOND_ASCII.test(bytes)) return bytes.toLowerCase();
  const text = Buffer.from(bytes, 'latin1').toString('utf8');
  return Buffer.from(text.toUpperCase().toLowerCase(), 'utf8').toString('latin1');
}

const BEYOND_ASCII = /[\x80-\xff]/;

/** Returns a text as clients send it, in UTF-8. Each code unit of the result is one byte. */
export function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1');
}
