/**
 * Servers differ in how they read some paths: whether %2F, %5C or a backslash is a slash, whether they remove segment
 * parameters (`;a=b`), merge slashes, resolve what is a dot segment only then, or decode twice. A path with such a
 * spelling has a reading for each kind of server. The set is closed, so the work for a request is bounded.
 */
import { decodeUnreserved, merged } from './path-text.ts';

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
  const readings = new Set<string>();
  for (const way of ways) addResolved(readings, way);
  return readings;
}

const SENT_PARAMETERS = /;[^/]*/g;
const PARAMETERS = /(?:;|%3B)[^/]*/g;

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
  readings.add(merged(resolvedFirst(path)));
}

function withoutSlashAtEnd(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** Resolves dot segments, of which each double dot removes one segment, also an empty one. */
function resolvedFirst(path: string): string {
  const kept: string[] = [];
  for (const segment of path.slice(1).split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '.') kept.push(segment);
  }
  return `/${kept.join('/')}`;
}
