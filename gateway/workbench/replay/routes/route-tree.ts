/**
 * Groups the paths of a log into routes. Numbers, UUIDs and long random segments become {id}. So does every segment at
 * a position with more than LITERALS_MAX different ones. The number of routes is bounded.
 */

/** Number of different segments at one position beyond which they count as names of users, files or articles. */
const LITERALS_MAX = 64;
const ROUTES_MAX = 2000;
/** The end of a deeper path becomes one segment. */
const DEPTH_MAX = 12;
const CACHED_MAX = 8192;

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const RANDOM = /^[A-Za-z0-9_~.-]{16,}$/;
/** Words and years, as in an article's title. Not an id. */
const SLUG = /^(?:[a-z]+|\d+)(?:[-_](?:[a-z]+|\d+)){2,}$/i;

/** Five consonants in a row, which words do not have. */
const UNSPEAKABLE = /[bcdfghjklmnpqrstvwxz]{5}/i;

/** Whether this segment identifies one object of many. */
export function isId(segment: string): boolean {
  if (/^\d+$/.test(segment) || UUID.test(segment)) return true;
  const isLong = RANDOM.test(segment) && !SLUG.test(segment);
  if (isLong && UNSPEAKABLE.test(segment)) return true;
  if (!/\d/.test(segment)) return false;
  if (/^[0-9a-f]{8,}$/i.test(segment)) return true;
  const changes = segment.match(/[A-Za-z](?=\d)|\d(?=[A-Za-z])/g)?.length ?? 0;
  return (changes >= 4 && segment.length >= 10) || (isLong && changes >= 1);
}

interface Node {
  literals: Map<string, Node>;
  param: Node | null;
  /** Whether too many names were seen here. Then all of them are one parameter. */
  isFolded: boolean;
  /** The node for all deeper paths. */
  rest: Node | null;
  readonly routes: Map<string, number>;
}

export class RouteTree {
  readonly #root: Node = newNode();
  readonly #texts: string[] = [];
  readonly #cache = new Map<string, readonly number[]>();

  get texts(): readonly string[] {
    return this.#texts;
  }

  /** Learns a path before requests are counted, so that positions with many names are known from the beginning. */
  learn(path: string): void {
    let node = this.#root;
    for (const segment of segmentsOf(path)) node = step(node, segment) ?? node;
  }

  /**
   * @param path canonical
   * @returns numbers of all matching routes, because all matching policies apply; none if there are too many routes
   */
  routesOf(method: string, path: string): readonly number[] {
    const key = `${method} ${path}`;
    const known = this.#cache.get(key);
    if (known !== undefined) return known;
    const segments = segmentsOf(path);
    this.#add(method, segments);
    const found: number[] = [];
    collect(this.#root, segments, 0, method, found);
    if (this.#cache.size >= CACHED_MAX) this.#cache.clear();
    this.#cache.set(key, found);
    return found;
  }

  #add(method: string, segments: readonly string[]): void {
    if (this.#texts.length >= ROUTES_MAX) return;
    const pattern: string[] = [];
    let node = this.#root;
    for (const segment of segments) {
      const next = step(node, segment);
      if (next === null) return;
      pattern.push(next === node.param ? '{id}' : next === node.rest ? '{rest*}' : segment);
      node = next;
      if (pattern.at(-1) === '{rest*}') break;
    }
    if (node.routes.has(method)) return;
    node.routes.set(method, this.#texts.length);
    this.#texts.push(`${method} /${pattern.join('/')}`);
    // Empty the cache, because cached paths may match the new route too.
    this.#cache.clear();
  }
}

function newNode(): Node {
  return { literals: new Map(), param: null, isFolded: false, rest: null, routes: new Map() };
}

/** Returns at most DEPTH_MAX segments. Deeper ones become one segment. */
function segmentsOf(path: string): readonly string[] {
  if (path === '/') return [];
  const segments = path.slice(1).split('/');
  return segments.length <= DEPTH_MAX ? segments : [...segments.slice(0, DEPTH_MAX - 1), REST];
}

/** A marker that no path contains, because its segments are never empty. */
const REST = '';

/** Returns the node of this segment, created if needed; null if there are too many. */
function step(node: Node, segment: string): Node | null {
  if (segment === REST) {
    node.rest ??= newNode();
    return node.rest;
  }
  const literal = node.literals.get(segment);
  if (literal !== undefined) return literal;
  const hasNames = node.literals.size >= LITERALS_MAX;
  if (node.isFolded || hasNames || isId(segment)) {
    if (node.param === null) node.param = newNode();
    if (hasNames && !node.isFolded && hasNoRoutes(node)) fold(node, node.param);
    return node.param;
  }
  const next = newNode();
  node.literals.set(segment, next);
  return next;
}

/** Replaces all literals by the parameter. Call it only while no route below has a number. */
function fold(node: Node, param: Node): void {
  for (const literal of node.literals.values()) merge(param, literal);
  node.literals = new Map();
  node.isFolded = true;
}

function merge(into: Node, from: Node): void {
  for (const [segment, child] of from.literals) {
    const other = into.literals.get(segment);
    if (other === undefined && into.literals.size < LITERALS_MAX) into.literals.set(segment, child);
    else if (other !== undefined) merge(other, child);
  }
  if (from.param !== null) {
    if (into.param === null) into.param = from.param;
    else merge(into.param, from.param);
  }
  into.rest ??= from.rest;
}

function hasNoRoutes(node: Node): boolean {
  if (node.routes.size > 0) return false;
  for (const child of node.literals.values()) if (!hasNoRoutes(child)) return false;
  return (node.param === null || hasNoRoutes(node.param)) && (node.rest === null || hasNoRoutes(node.rest));
}

function collect(node: Node, segments: readonly string[], at: number, method: string, found: number[]): void {
  const segment = segments[at];
  if (segment === undefined) {
    const route = node.routes.get(method);
    if (route !== undefined) found.push(route);
    return;
  }
  const rest = node.rest?.routes.get(method);
  if (rest !== undefined) found.push(rest);
  if (segment === REST) return;
  const literal = node.literals.get(segment);
  if (literal !== undefined) collect(literal, segments, at + 1, method, found);
  if (node.param !== null) collect(node.param, segments, at + 1, method, found);
}
