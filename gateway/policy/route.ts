/**
 * A route of `policies.yaml`: methods and a path pattern.
 *
 * - `POST /a/{id}/b`: `{param}` matches one segment
 * - `GET,PUT /a/*`: `/a` and everything below it
 * - `DELETE /a/{name*}`: one or more segments, including the slashes between them
 * - `OPTIONS *`: every path
 */
import { METHODS } from '#gateway/http/node-http.ts';
import { HostNames } from './host-names.ts';
import { Mistake, type Report, readEach } from './problems.ts';
import { caseless, meaningOf, readTarget } from './target.ts';

export type Segment =
  /** `text` is decoded with `meaningOf`, and case-folded if the route ignores case. */
  | { readonly kind: 'literal'; readonly text: string }
  | {
      readonly kind: 'param';
      readonly name: string;
      /** The parameter is written {name*}: its value includes all following segments. */
      readonly takesRest: boolean;
    }
  /** A wildcard, which matches any number of segments, including none. */
  | { readonly kind: 'rest' };

export interface Route {
  readonly text: string;
  /** Upper case; null for every method. HEAD is matched as GET. */
  readonly methods: ReadonlySet<string> | null;
  readonly segments: readonly Segment[];
  readonly ignoresCase: boolean;
}

/** An entry of `exclude` or `deny`. */
export interface HostRoute extends Route {
  /** The hosts for which it applies; null for all. */
  readonly hosts: HostNames | null;
}

const LITERAL = /^(?:[A-Za-z0-9\-_~!$&'()+,=:@.]|%[0-9A-Fa-f]{2})+$/;
const PARAM = /^\{([A-Za-z][A-Za-z0-9_]*)(\*?)\}$/;

export function parseRoute(text: string, ignoresCase = false): Route {
  const [methodText = '', pattern, ...more] = text.trim().split(/\s+/);
  if (pattern === undefined || more.length > 0) {
    throw new Mistake(
      `"${text}" is not a route`,
      'it must be METHODS PATH, such as "POST /api/items" or "GET,PUT /api/items/*"',
    );
  }
  return {
    text: `${methodText} ${pattern}`,
    methods: parseMethods(methodText),
    segments: parsePattern(pattern, ignoresCase),
    ignoresCase,
  };
}

/** Reports mistakes by the number of the entry. */
export function readHosts(texts: readonly string[], report: Report): HostNames {
  const names = new HostNames();
  readEach(texts, report, (text) => names.add(text));
  return names;
}

/**
 * @param report reports mistakes of the hosts
 * @throws Mistake if the route is wrong
 */
export function parseHostRoute(
  text: string,
  hosts: readonly string[] | undefined,
  ignoreCase: boolean,
  report: Report,
): HostRoute {
  const route = parseRoute(text, ignoreCase);
  if (hosts === undefined) return { ...route, hosts: null };
  return { ...route, text: `${route.text} for ${hosts.join(', ')}`, hosts: readHosts(hosts, report) };
}

function parseMethods(text: string): ReadonlySet<string> | null {
  if (text === '*') return null;
  const methods = new Set<string>();
  for (const method of text.split(',')) {
    if (!METHODS.includes(method)) {
      throw new Mistake(
        `method "${method}" is unknown`,
        'write upper-case methods such as GET, several joined by commas without spaces, or *',
      );
    }
    if (method === 'HEAD') throw new Mistake('HEAD counts as GET', 'write GET');
    if (methods.has(method)) throw new Mistake(`method ${method} appears twice`, 'write it once');
    methods.add(method);
  }
  return methods;
}

function parsePattern(pattern: string, ignoresCase: boolean): Segment[] {
  if (pattern === '*') return [{ kind: 'rest' }];
  if (!pattern.startsWith('/'))
    throw new Mistake(`path "${pattern}" does not begin with /`, 'write /PATH, or * for every path');
  if (pattern === '/') return [];
  const parts = pattern.slice(1).split('/');
  return parts.flatMap((part, i): Segment[] => {
    if (part === '')
      throw new Mistake(
        `path "${pattern}" has an empty segment`,
        'remove the slash; matching ignores repeated and trailing slashes',
      );
    const param = PARAM.exec(part);
    const name = param?.[1] ?? '';
    const isRest = part === '*' || param?.[2] === '*';
    if (isRest && i < parts.length - 1)
      throw new Mistake(`${part} matches the rest of the path`, 'it must be the last segment');
    if (part === '*') return [{ kind: 'rest' }];
    if (isRest) return [{ kind: 'param', name, takesRest: true }, { kind: 'rest' }];
    if (param !== null) return [{ kind: 'param', name, takesRest: false }];
    const literal = parseLiteral(part);
    return [{ kind: 'literal', text: ignoresCase ? caseless(literal) : literal }];
  });
}

function parseLiteral(part: string): string {
  // `:param` is the syntax of other products. As a literal it would match nothing, and nobody would notice.
  if (part.startsWith(':'))
    throw new Mistake(
      `segment "${part}" begins with a colon`,
      'write {param} for any one segment, and a literal : as %3A',
    );
  const target = readTarget(`/${part}`);
  if (!LITERAL.test(part) || (target.ok && target.path === '/')) {
    throw new Mistake(
      `segment "${part}" is neither a literal nor a wildcard`,
      'write a literal (other characters percent-encoded), {param} for one segment, or * at the end for everything below',
    );
  }
  if (!target.ok)
    throw new Mistake(
      `segment "${part}" can match no request: ${target.reason}`,
      'write it as a client may send it; such requests get 400',
    );
  return meaningOf(target.path.slice(1));
}

/**
 * Finds routes in `wide` that together match every request of `narrow`. Returns none if they leave a request unmatched.
 */
export function coveredBy(narrow: Route, wide: readonly Route[]): Route[] {
  const wideEnough = wide.filter(({ segments }) => coversPath(segments, narrow.segments));
  const covering = new Set<Route>();
  for (const method of narrow.methods ?? [null]) {
    const one = wideEnough.find(
      ({ methods }) => methods === null || (method !== null && methods.has(method)),
    );
    if (one === undefined) return [];
    covering.add(one);
  }
  return [...covering];
}

function coversPath(wide: readonly Segment[], narrow: readonly Segment[]): boolean {
  for (const [at, w] of wide.entries()) {
    if (w.kind === 'rest') return true;
    const n = narrow[at];
    if (n === undefined || n.kind === 'rest') return false;
    if (w.kind === 'literal' && (n.kind !== 'literal' || n.text !== w.text)) return false;
  }
  return wide.length === narrow.length;
}
