/**
 * A route: a method set and a path pattern, as one line of `policies.yaml` writes it.
 *
 * `POST /a/{id}/b`   literals and `{param}`, one segment each
 * `GET,PUT /a/*`     this collection and everything below it, the bare `/a` too
 * `DELETE /a/{name*}` the rest, slashes included, at least one segment
 * `OPTIONS *`        every path
 */

export type Segment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'param' }
  /** All that follows; `atLeast` 0 also matches nothing. */
  | { readonly kind: 'rest'; readonly atLeast: 0 | 1 };

export interface Route {
  /** As written, for reports. */
  readonly text: string;
  /** Upper-case methods; null stands for every method. HEAD is matched as GET. */
  readonly methods: ReadonlySet<string> | null;
  readonly segments: readonly Segment[];
}

const METHOD = /^[A-Z]+$/;
/** What may stand in a literal segment: what a canonical path can contain. */
const LITERAL = /^(?:[A-Za-z0-9\-_~!$&'()+,=:@.]|%[0-9A-F]{2})+$/;
const PARAM = /^\{[A-Za-z][A-Za-z0-9_]*(\*?)\}$/;

/** @throws Error that says what is wrong with the route and how to write it */
export function parseRoute(text: string): Route {
  const [methodText = '', pattern, ...more] = text.trim().split(/\s+/);
  if (pattern === undefined || more.length > 0) {
    throw new Error(
      `route "${text}" must be METHODS PATH, such as "POST /api/items" or "GET,PUT /api/items/*"`,
    );
  }
  return {
    text: `${methodText} ${pattern}`,
    methods: parseMethods(methodText),
    segments: parsePattern(pattern),
  };
}

function parseMethods(text: string): ReadonlySet<string> | null {
  if (text === '*') return null;
  const methods = new Set<string>();
  for (const method of text.split(',')) {
    if (!METHOD.test(method)) {
      throw new Error(
        `method "${method}" must be upper-case letters, several joined by commas without spaces, or *`,
      );
    }
    if (method === 'HEAD') throw new Error('HEAD counts as GET: write GET');
    if (methods.has(method)) throw new Error(`method ${method} stands twice`);
    methods.add(method);
  }
  return methods;
}

function parsePattern(pattern: string): Segment[] {
  if (pattern === '*') return [{ kind: 'rest', atLeast: 0 }];
  if (!pattern.startsWith('/'))
    throw new Error(`path "${pattern}" must begin with /, or be * for every path`);
  if (pattern === '/') return [];
  const parts = pattern.slice(1).split('/');
  return parts.map((part, i): Segment => {
    const isLast = i === parts.length - 1;
    const param = PARAM.exec(part);
    if (part === '*' || param?.[1] === '*') {
      if (!isLast) throw new Error(`${part} matches the rest of the path, so it must be the last segment`);
      return { kind: 'rest', atLeast: part === '*' ? 0 : 1 };
    }
    if (param !== null) return { kind: 'param' };
    if (part === '')
      throw new Error(
        `path "${pattern}" has an empty segment; matching ignores repeated and trailing slashes`,
      );
    if (part === '.' || part === '..' || !LITERAL.test(part)) {
      throw new Error(
        `segment "${part}" must be a literal without wildcards, {param} for one segment, or * at the end for everything below`,
      );
    }
    return { kind: 'literal', text: part };
  });
}

/** Does `wide` match every request that `narrow` matches? */
export function covers(wide: Route, narrow: Route): boolean {
  if (wide.methods !== null) {
    if (narrow.methods === null) return false;
    for (const method of narrow.methods) if (!wide.methods.has(method)) return false;
  }
  return coversFrom(wide.segments, narrow.segments, 0);
}

function coversFrom(wide: readonly Segment[], narrow: readonly Segment[], at: number): boolean {
  const w = wide[at];
  const n = narrow[at];
  if (w?.kind === 'rest')
    return w.atLeast === 0 || (n !== undefined && !(n.kind === 'rest' && n.atLeast === 0));
  if (w === undefined || n === undefined) return w === n;
  if (n.kind === 'rest') return false;
  if (w.kind === 'literal' && (n.kind !== 'literal' || n.text !== w.text)) return false;
  return coversFrom(wide, narrow, at + 1);
}
