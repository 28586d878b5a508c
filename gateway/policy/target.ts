/**
 * Reads a request target: the target to forward, and the paths that servers may take it for. The application gets the
 * path as it was sent, but for dot segments, which are resolved. So each reading is matched against the policies. The
 * URL class is not used because it repairs targets silently.
 */
import {
  decodeUnreserved,
  encodeBeyondAscii,
  hasDotSegments,
  isReadDifferently,
  merged,
  readingsOf,
  withoutDotSegments,
  withoutParameters,
} from './path-readings.ts';
import { Mistake } from './problems.ts';

interface Target {
  readonly ok: true;
  /** The path and the query to forward. */
  readonly forwarded: string;
  /**
   * The plain reading, for logs and values. Absolute. Unreserved characters are decoded once; dot segments, empty
   * segments and a trailing slash are removed.
   */
  readonly path: string;
  /** The other readings. Empty if all servers read the path in the same way. */
  readonly others: readonly string[];
}

interface BadTarget {
  readonly ok: false;
  readonly reason: string;
}

const bad = (reason: string): BadTarget => ({ ok: false, reason });

/** Characters that need no rewriting: unreserved, sub-delims, `:` and `@`, but not `.`, `;` and `%`. */
const PLAIN = new Uint8Array(256);
for (const char of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~!$&'()*+,=:@") {
  PLAIN[char.charCodeAt(0)] = 1;
}

const SLASH = 47;
const QUESTION = 63;
/** The absolute form (RFC 9112 3.2.2). */
const ABSOLUTE = /^https?:\/\/([^/?#\\]+)/i;
const NO_OTHERS: readonly string[] = [];

/** @param raw from the request line, decoded as latin1, so each code unit stands for one byte */
export function readTarget(raw: string): Target | BadTarget {
  if (raw.charCodeAt(0) === SLASH) return readOrigin(raw);
  // Only the path of the absolute form is read here; `authorityOf` returns the rest.
  const absolute = ABSOLUTE.exec(raw);
  if (absolute === null) return bad('the request target must be a path that begins with /');
  const rest = raw.slice(absolute[0].length);
  return readOrigin(rest.startsWith('/') ? rest : `/${rest}`);
}

/** @returns the host and port of a target in absolute form; null if the target is a path */
export function authorityOf(raw: string): string | null {
  return raw.charCodeAt(0) === SLASH ? null : (ABSOLUTE.exec(raw)?.[1] ?? null);
}

function readOrigin(raw: string): Target | BadTarget {
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
  if (i < raw.length && !PLAIN_QUERY.test(raw.slice(i))) return rewrite(raw);
  const path = raw.slice(0, previous === SLASH && i > 1 ? i - 1 : i);
  return { ok: true, forwarded: raw, path, others: NO_OTHERS };
}

const PLAIN_QUERY = /^[!"$-~]+$/;
/** Matches all but visible ASCII and bytes from 0x80, and also `#`. */
const BAD = /[^!-~\x80-\xff]|#/;

/** All readings of a longer path would cost a client nothing, and the gateway several milliseconds. */
const READ_DIFFERENTLY_BYTES_MAX = 2048;
const TOO_LONG = `the path is longer than ${READ_DIFFERENTLY_BYTES_MAX} bytes and has a spelling that servers read differently, such as %2F, ; or //; shorten it`;

function rewrite(raw: string): Target | BadTarget {
  if (BAD.test(raw))
    return bad('the request target contains a control character, a space or #; percent-encode it');
  const ascii = encodeBeyondAscii(raw);
  const mark = ascii.indexOf('?');
  const sent = mark < 0 ? ascii : ascii.slice(0, mark);
  const query = mark < 0 ? '' : ascii.slice(mark);
  if (sent.includes('\\')) return bad('the path contains a backslash; percent-encode it');
  const resolved = hasDotSegments(sent) ? withoutDotSegments(sent) : sent;
  const decoded = decodeUnreserved(resolved);
  // Where another proxy forwards the request, the application resolves dot segments itself.
  const original = resolved === sent ? decoded : decodeUnreserved(sent);
  if ('reason' in decoded) return bad(decoded.reason);
  if ('reason' in original) return bad(original.reason);
  const forwarded = resolved + query;
  const path = merged(decoded.path);
  if (!isReadDifferently(original.path)) return { ok: true, forwarded, path, others: NO_OTHERS };
  if (original.path.length > READ_DIFFERENTLY_BYTES_MAX) return bad(TOO_LONG);
  const readings = readingsOf([...new Set([decoded.path, original.path])]);
  if (readings === null) return bad('the path contains a control character that is encoded twice');
  readings.delete(path);
  return { ok: true, forwarded, path, others: [...readings] };
}

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
 * Returns the value of a part of the path, without segment parameters, because some applications strip them.
 *
 * @param path a reading
 * @param at index of the segment, from 0
 * @param takesRest the value includes all following segments
 * @returns null if the path has no such segment
 */
export function pathValue(path: string, at: number, takesRest: boolean, ignoresCase: boolean): string | null {
  const segments = path.slice(1).split('/');
  const value = takesRest ? segments.slice(at).map(bareMeaning).join('/') : bareMeaning(segments[at] ?? '');
  return (ignoresCase ? caseless(value) : value) || null;
}

function bareMeaning(segment: string): string {
  return meaningOf(withoutParameters(segment));
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

/** Parses `METHOD TARGET`, the notation of `explain` and of tests. @throws Mistake if it is malformed */
export function parseRequestLine(text: string): { readonly method: string; readonly target: string } {
  const [method = '', target, ...more] = text.trim().split(/\s+/);
  if (target === undefined || more.length > 0 || !/^[A-Z]+$/.test(method) || !/^(?:\/|https?:)/.test(target))
    throw new Mistake(`"${text}" is not a request`, 'write METHOD PATH, such as "POST /api/items?page=2"');
  return { method, target: bytesOf(target) };
}
