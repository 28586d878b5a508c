/** Explains in words why a route does not match a request. */
import { Mistake } from './problems.ts';
import type { Route, Segment } from './route.ts';
import { bytesOf, caseless, meaningOf } from './target.ts';

/**
 * @param method as sent; HEAD is matched as GET
 * @param path canonical
 * @returns null if the route matches
 */
export function mismatchOf(route: Route, method: string, path: string): string | null {
  return pathMismatchOf(route, path) ?? methodMismatchOf(route, method);
}

function methodMismatchOf({ methods }: Route, method: string): string | null {
  if (methods === null || methods.has(method === 'HEAD' ? 'GET' : method)) return null;
  return `the method is ${method}, the route has ${[...methods].join(', ')}`;
}

function pathMismatchOf(route: Route, path: string): string | null {
  const segments = path === '/' ? [] : path.slice(1).split('/').map(meaningOf);
  for (const [i, wanted] of route.segments.entries()) {
    if (wanted.kind === 'rest') return null;
    const segment = segments[i];
    if (segment === undefined)
      return `the path ends before segment ${i + 1}, where the route has ${shown(wanted)}`;
    if (wanted.kind === 'literal' && wanted.text !== (route.ignoresCase ? caseless(segment) : segment))
      return `segment ${i + 1} is "${segment}", the route has ${shown(wanted)}`;
  }
  const extra = segments[route.segments.length];
  return extra === undefined
    ? null
    : `the path continues with "${extra}" where the route ends; write /* at its end to cover everything below`;
}

function shown(segment: Segment): string {
  switch (segment.kind) {
    case 'literal':
      return `"${segment.text}"`;
    case 'param':
      return 'any segment';
    case 'rest':
      return 'anything';
    default:
      return segment satisfies never;
  }
}

/** Parses `METHOD TARGET`, the notation of `explain` and of tests. @throws Mistake if it is malformed */
export function parseRequestLine(text: string): { readonly method: string; readonly target: string } {
  const [method = '', target, ...more] = text.trim().split(/\s+/);
  if (target === undefined || more.length > 0 || !/^[A-Z]+$/.test(method) || !/^(?:\/|https?:)/.test(target))
    throw new Mistake(`"${text}" is not a request`, 'write METHOD PATH, such as "POST /api/items?page=2"');
  return { method, target: bytesOf(target) };
}
