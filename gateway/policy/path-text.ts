/** Operations on the text of a path, which every reading of a path is made of. */

const UNRESERVED = /[A-Za-z0-9\-._~]/;

/**
 * Decodes only unreserved characters (%41 becomes A), once. Others stay encoded, with upper-case hex digits. Bytes beyond
 * ASCII become encoded.
 *
 * @param path each code unit stands for one byte
 */
export function decodeUnreserved(path: string): { readonly path: string } | { readonly reason: string } {
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
      return { reason: 'the path contains a % that is not followed by two hex digits' };
    const byte = Number.parseInt(digits, 16);
    i += 2;
    if (byte < 0x20 || byte === 0x7f) return { reason: 'the path contains an encoded control character' };
    const decoded = String.fromCharCode(byte);
    out += UNRESERVED.test(decoded) ? decoded : hex(byte);
  }
  return { path: out };
}

/** Percent-encodes the bytes beyond ASCII, which URIs must not contain but some clients send. */
export function encodeBeyondAscii(text: string): string {
  return text.replace(/[\x80-\xff]/g, (byte) => hex(byte.charCodeAt(0)));
}

function hex(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

/** Matches a `.` or `..`, also percent-encoded, that is a segment of its own. */
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

export function hasDotSegments(path: string): boolean {
  return DOT_SEGMENT.test(path);
}

/** Resolves dot segments, and leaves every other byte as it is. A double dot also removes the empty segments before it. */
export function withoutDotSegments(path: string): string {
  const kept: string[] = [];
  const segments = path.split('/');
  for (let i = 1; i < segments.length; i++) {
    const segment = segments[i] ?? '';
    const dots = dotsIn(segment);
    if (dots === 2) {
      while (kept.at(-1) === '') kept.pop();
      kept.pop();
    }
    if (dots === 0) kept.push(segment);
    else if (i === segments.length - 1) kept.push('');
  }
  return `/${kept.join('/')}`;
}

function dotsIn(segment: string): number {
  if (segment === '.' || segment === '..') return segment.length;
  if (segment.length > 6 || !/^(?:\.|%2e){1,2}$/i.test(segment)) return 0;
  return segment.replaceAll(/%2e/gi, '.').length;
}

/** Resolves dot segments and merges slashes, also at the end. */
export function merged(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(segment);
  }
  return `/${kept.join('/')}`;
}

export function withoutParameters(segment: string): string {
  return segment.replace(SEGMENT_PARAMETERS, '');
}

const SEGMENT_PARAMETERS = /(?:;|%3B).*$/;
