/** A tree of path segments with all routes of one kind. One walk finds every route that matches. */
import type { Route } from './route.ts';
import { caseless, meaningOf } from './target.ts';

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  param: Node<T> | null;
  readonly here: Entry<T>[];
  /** Routes that end in /* at this node. They match the node and everything below it. */
  readonly below: Entry<T>[];
}

interface Entry<T> {
  readonly methods: ReadonlySet<string> | null;
  readonly value: T;
}

export class RouteTree<T> {
  readonly #root: Node<T> = newNode();
  readonly #ignoresCase: boolean;
  /** Number of segments of the longest route. */
  readonly #depth: number;

  constructor(routes: Iterable<readonly [Route, T]>, ignoresCase: boolean) {
    this.#ignoresCase = ignoresCase;
    let depth = 0;
    for (const [route, value] of routes) {
      depth = Math.max(depth, route.segments.length);
      let node = this.#root;
      let list = (at: Node<T>): Entry<T>[] => at.here;
      for (const segment of route.segments) {
        if (segment.kind === 'rest') {
          list = (at) => at.below;
        } else if (segment.kind === 'param') {
          node.param ??= newNode();
          node = node.param;
        } else {
          let next = node.literals.get(segment.text);
          if (next === undefined) {
            next = newNode();
            node.literals.set(segment.text, next);
          }
          node = next;
        }
      }
      list(node).push({ methods: route.methods, value });
    }
    this.#depth = depth;
  }

  find(method: string, path: string): readonly T[] {
    const found: T[] = [];
    // One segment more shows that the path goes on. Long paths have very many.
    let segments = path === '/' ? [] : path.slice(1).split('/', this.#depth + 1);
    if (path.includes('%')) segments = segments.map(meaningOf);
    if (this.#ignoresCase) segments = segments.map(caseless);
    walk(this.#root, segments, 0, method, found);
    return found;
  }
}

function newNode<T>(): Node<T> {
  return { literals: new Map(), param: null, here: [], below: [] };
}

function walk<T>(node: Node<T>, segments: readonly string[], at: number, method: string, found: T[]): void {
  collect(node.below, method, found);
  const segment = segments[at];
  if (segment === undefined) {
    collect(node.here, method, found);
    return;
  }
  const literal = node.literals.get(segment);
  if (literal !== undefined) walk(literal, segments, at + 1, method, found);
  // Applications do not take an empty segment for a value.
  if (node.param !== null && segment !== '') walk(node.param, segments, at + 1, method, found);
}

function collect<T>(entries: readonly Entry<T>[], method: string, found: T[]): void {
  for (const { methods, value } of entries) if (methods === null || methods.has(method)) found.push(value);
}

/**
 * Explains in words why a route does not match a request.
 *
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
