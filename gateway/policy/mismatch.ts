/** Explains in words why a route does not match a request, and reads the requests of explain and of tests. */
import { Mistake } from './problems.ts';
import type { Route } from './route.ts';
import { RouteTree } from './route-tree.ts';
import { bytesOf } from './target.ts';

/**
 * @param method as sent; HEAD is matched as GET
 * @param path canonical
 * @returns null if the route matches
 */
export function mismatchOf(route: Route, method: string, path: string): string | null {
  const { methods, text, ignoresCase } = route;
  const tree = new RouteTree([[{ ...route, methods: null }, route]], ignoresCase);
  if (tree.find(method, path).length === 0) return `the path is not ${text.split(' ')[1]}`;
  if (methods === null || methods.has(method === 'HEAD' ? 'GET' : method)) return null;
  return `the method is ${method}, the route has ${[...methods].join(', ')}`;
}

/** Parses `METHOD TARGET`, the notation of `explain` and of tests. @throws Mistake if it is malformed */
export function parseRequestLine(text: string): { readonly method: string; readonly target: string } {
  const [method = '', target, ...more] = text.trim().split(/\s+/);
  if (target === undefined || more.length > 0 || !/^[A-Z]+$/.test(method) || !/^(?:\/|https?:)/.test(target))
    throw new Mistake(`"${text}" is not a request`, 'write METHOD PATH, such as "POST /api/items?page=2"');
  return { method, target: bytesOf(target) };
}
