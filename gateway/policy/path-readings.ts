/**
 * Servers differ in how they read some paths: whether %2F, %5C or a backslash is a slash, whether they remove segment
 * parameters (`;a=b`), merge slashes, resolve what is a dot segment only then, decode twice, or take what follows two
 * slashes at the start for a host. A path with such a spelling has a reading for each kind of server. The set is closed,
 * so the work for a request is bounded.
 */
const DIFFERING = /\/\/|;|%(?:2F|5C|3B|25[0-9A-Fa-f]{2})/;

/** Whether servers may read the path in different ways. */
export function isReadDifferently(path: string): boolean {
  return DIFFERING.test(path);
}

/**
 * @param paths with unreserved characters decoded: as forwarded; and as sent, if that has dot segments
 * @returns every reading. null if a server that decodes twice would find a control character
 */
export function readingsOf(paths: readonly string[]): Set<string> | null {
  const ways = waysToRead(paths);
  // URL parsers that read the path as a reference (RFC 3986 4.2) find a host. Applications decode before that, or after.
  const hostless = waysToRead(paths.filter((path) => HOST.test(path)).map(withoutHost));
  if (ways === null || hostless === null) return null;
  addEach(ways, withoutHost);
  const readings = new Set<string>();
  for (const way of ways.union(hostless)) addResolved(readings, way);
  return readings;
}

/** @returns null if a control character appears */
function waysToRead(paths: readonly string[]): Set<string> | null {
  const ways = new Set(paths);
  // Tomcat removes parameters before it decodes, others decode first.
  addEach(ways, (path) => path.replaceAll(SENT_PARAMETERS, ''));
  for (const path of [...ways]) {
    const again = decodedAgain(path);
    if (again === null) return null;
    ways.add(again);
  }
  addEach(ways, (path) => path.replaceAll('%2F', '/'));
  addEach(ways, (path) => path.replaceAll('%5C', '/'));
  addEach(ways, (path) => path.replaceAll(PARAMETERS, ''));
  return ways;
}

const SENT_PARAMETERS = /;[^/]*/g;
const PARAMETERS = /(?:;|%3B)[^/]*/g;
/** Some parsers also skip further slashes. */
const HOST = /^\/{2,}[^/]*/;

function withoutHost(path: string): string {
  return path.replace(HOST, '') || '/';
}

/** Servers do this to a path, or do not. */
function addEach(ways: Set<string>, read: (path: string) => string): void {
  for (const path of [...ways]) ways.add(read(path));
}

/** @returns null if a control character appears */
function decodedAgain(path: string): string | null {
  if (!path.includes('%25')) return path;
  const again = decodeUnreserved(path.replaceAll(ENCODED_TWICE, '%'));
  return 'path' in again ? again.path : null;
}

const ENCODED_TWICE = /%25(?=[0-9A-Fa-f]{2})/g;

const EMPTY_SEGMENT = /\/\//;
const DOT_SEGMENT = /\/\.{1,2}(?:\/|$)/;

/** Adds what servers make of empty and dot segments. All ignore one slash at the end. */
function addResolved(readings: Set<string>, path: string): void {
  readings.add(merged(path));
  const hasEmpty = EMPTY_SEGMENT.test(path);
  const hasDots = DOT_SEGMENT.test(path);
  // Some servers leave both as they are.
  if (hasEmpty || hasDots) readings.add(withoutSlashAtEnd(path));
  if (!hasEmpty || !hasDots) return;
  // Some merge slashes and leave dot segments; some resolve dot segments first, as RFC 3986 5.2.4 does.
  readings.add(withoutSlashAtEnd(path.replaceAll(/\/{2,}/g, '/')));
  readings.add(merged(merged(path, true)));
}

function withoutSlashAtEnd(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

const UNRESERVED = /[A-Za-z0-9\-._~]/;

/**
 * Decodes only unreserved characters (%41 becomes A), once. Others stay encoded, with upper-case hex digits. Bytes beyond
 * ASCII become encoded.
 *
 * @param path each code unit stands for one byte
 */
export function decodeUnreserved(path: string): { readonly path: string } | { readonly reason: string } {
  let reason: string | null = null;
  const decoded = path.replace(/%([0-9A-Fa-f]{2})?|[\x80-\xff]/g, (sent, digits?: string) => {
    if (sent === '%') reason ??= 'the path contains a % that is not followed by two hex digits';
    const byte = digits === undefined ? sent.charCodeAt(0) : Number.parseInt(digits, 16);
    if (byte < 0x20 || byte === 0x7f) reason ??= 'the path contains an encoded control character';
    const char = String.fromCharCode(byte);
    return UNRESERVED.test(char) ? char : hex(byte);
  });
  return reason === null ? { path: decoded } : { reason };
}

/** Percent-encodes the bytes beyond ASCII, which URIs must not contain but some clients send. */
export function encodeBeyondAscii(text: string): string {
  return text.replace(/[\x80-\xff]/g, (byte) => hex(byte.charCodeAt(0)));
}

function hex(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

/** Matches a `.` or `..`, also percent-encoded, that is a segment of its own. */
const SENT_DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

export function hasDotSegments(path: string): boolean {
  return SENT_DOT_SEGMENT.test(path);
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

/**
 * Resolves dot segments and merges slashes, also at the end.
 *
 * @param keepsEmpty instead of merging slashes, it keeps empty segments, and a double dot also removes one
 */
export function merged(path: string, keepsEmpty = false): string {
  const kept: string[] = [];
  for (const segment of path.slice(1).split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '.' && (segment !== '' || keepsEmpty)) kept.push(segment);
  }
  return `/${kept.join('/')}`;
}

export function withoutParameters(segment: string): string {
  return segment.replace(SEGMENT_PARAMETERS, '');
}

const SEGMENT_PARAMETERS = /(?:;|%3B).*$/;
