/** Converts paths in the notation of other products to that of a policy file. */
import { coveredBy, parseRoute } from '#gateway/policy/route.ts';

/** Maximum number of rows for the alternatives of one expression. */
const ALTERNATIVES_MAX = 16;
const EXPRESSION_LENGTH_MAX = 2000;
const PATH_LENGTH_MAX = 1900;

/** @param path canonical or not @returns the path and everything below it; null if a policy file cannot express it */
export function prefixPattern(path: string): string | null {
  const bare = path.replace(/\/+$/, '');
  return validPath(bare === '' ? '*' : `${escaped(bare)}/*`);
}

/** @returns exactly this path; null if a policy file cannot express it */
export function exactPattern(path: string): string | null {
  const bare = path.replace(/(?<=.)\/+$/, '');
  return validPath(escaped(bare));
}

export interface Paths {
  readonly paths: readonly string[];
  /** Differences from the original. */
  readonly notes: readonly string[];
}

/**
 * Converts the few regular expressions that a policy file can express: literals, one segment of any or of some
 * characters, alternatives, everything below.
 *
 * @param expression must match the whole path, as if it were between ^ and $
 * @returns null for any other
 */
export function expressionPaths(expression: string): Paths | null {
  if (expression.length > EXPRESSION_LENGTH_MAX) return null;
  const body = expression.replace(/^\^/, '').replace(/(?<!\\)\$$/, '');
  const paths = new Set<string>();
  const wider = new Set<string>();
  for (const alternative of alternatives(body) ?? []) {
    const path = patternOf(alternative);
    if (path === null) return null;
    paths.add(path.text);
    if (path.isWider) wider.add(`the route matches more than ${expression}`);
  }
  return paths.size === 0 ? null : { paths: [...paths], notes: [...wider] };
}

/** Expands `/a/(b|c)` to `/a/b` and `/a/c`. @returns null if there are too many, or groups within groups */
function alternatives(body: string): string[] | null {
  const group = /\((?:\?:)?([\w./\\-]+(?:\|[\w./\\-]+)+)\)(?![?*+{])/.exec(body);
  if (group === null) return [body];
  const all: string[] = [];
  for (const choice of (group[1] ?? '').split('|')) {
    const rest = alternatives(
      body.slice(0, group.index) + choice + body.slice(group.index + group[0].length),
    );
    if (rest === null) return null;
    all.push(...rest);
    if (all.length > ALTERNATIVES_MAX) return null;
  }
  return all;
}

/** Matches one segment of any characters. */
const ANY_SEGMENT = /^(?:\(\?<\w+>|\()?(?:\[\^\/(?:\\?\?|#)*\]\+|\[\^\/\]\{1,\})\)?$/;
/** Matches one segment of some characters. */
const SOME_SEGMENT = /^(?:\(\?<\w+>|\()?(?:\[[\w\\.~:@-]+\]|\\w|\\d)(?:\+|\{\d+(?:,\d*)?\})\)?$/;
const REST = /^(?:\.\*|\(\.\*\)|\.\+|\(\.\+\))$/;

interface Pattern {
  readonly text: string;
  readonly isWider: boolean;
}

const EVERYTHING: Pattern = { text: '*', isWider: false };

function patternOf(body: string): Pattern | null {
  let text = body.replaceAll('\\/', '/');
  let isPrefix = false;
  const below = /(?:\(\/\.\*\)\?|\(\?:\/\.\*\)\?|\(\/\|\$\)|\(\?:\/\|\$\))$/.exec(text);
  if (below !== null) {
    text = text.slice(0, below.index);
    isPrefix = true;
  }
  text = text.replace(/\/\?$/, '');
  if (REST.test(text)) return EVERYTHING;
  if (!text.startsWith('/')) return text === '' && isPrefix ? EVERYTHING : null;
  const parts = splitSegments(text.replace(/\/$/, ''));
  let isWider = false;
  const segments: string[] = [];
  for (const [i, part] of parts.entries()) {
    const isLast = i === parts.length - 1;
    if (isLast && REST.test(part)) return finished(segments, true, isWider);
    if (ANY_SEGMENT.test(part)) segments.push(`{p${i + 1}}`);
    else if (SOME_SEGMENT.test(part)) {
      segments.push(`{p${i + 1}}`);
      isWider = true;
    } else {
      const literal = part.replaceAll(/\\([.\-_~@:])/g, '$1');
      // A dot in a path is usually meant literally. The other characters are no literals.
      if (/[\\^$*+?()[\]{}|]/.test(literal)) return null;
      segments.push(escaped(literal));
    }
  }
  return finished(segments, isPrefix, isWider);
}

/** Splits at slashes outside of brackets. */
function splitSegments(path: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let part = '';
  for (const character of path.slice(1)) {
    if (character === '[' || character === '(') depth++;
    if (character === ']' || character === ')') depth--;
    if (character === '/' && depth === 0) {
      parts.push(part);
      part = '';
    } else part += character;
  }
  return path === '' ? [] : [...parts, part];
}

function finished(segments: readonly string[], isPrefix: boolean, isWider: boolean): Pattern | null {
  const path = segments.map((segment) => `/${segment}`).join('');
  const text = validPath(isPrefix ? (path === '' ? '*' : `${path}/*`) : path || '/');
  return text === null ? null : { text, isWider };
}

/** Percent-encodes characters that have a meaning in a route, or are invalid in a URL. */
function escaped(path: string): string {
  return path.replaceAll(/[^A-Za-z0-9\-_~!$&'()+,=@./%:]|(?<=^|\/):/g, (character) =>
    [...Buffer.from(character)]
      .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
      .join(''),
  );
}

function validPath(path: string): string | null {
  if (path.length > PATH_LENGTH_MAX) return null;
  try {
    parseRoute(`* ${path}`);
    return path;
  } catch {
    return null;
  }
}

/** A set of requests. */
interface RequestSet {
  readonly methods: readonly string[] | null;
  readonly path: string;
}

/** @returns the requests in both; null if there are none, or if no single path matches them */
export function narrower(a: RequestSet, b: RequestSet): RequestSet | null {
  const methods = commonMethods(a.methods, b.methods);
  const path = isWithin(a.path, b.path) ? a.path : isWithin(b.path, a.path) ? b.path : null;
  return path === null || methods?.length === 0 ? null : { methods, path };
}

/** @param inner, outer paths in the notation of a policy file */
function isWithin(inner: string, outer: string): boolean {
  return coveredBy(parseRoute(`* ${inner}`), [parseRoute(`* ${outer}`)]).length > 0;
}

function commonMethods(a: readonly string[] | null, b: readonly string[] | null): readonly string[] | null {
  if (a === null) return b;
  return b === null ? a : a.filter((method) => b.includes(method));
}
