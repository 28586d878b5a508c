/**
 * Finds the policies that apply to a request. All routes form a tree of path segments; one walk collects every match.
 * Requests with the same set of policies share one `Cover` object, so facts about the set are computed once.
 */

import { highestOf, type Priority } from '#gateway/bounds/priority.ts';
import { type Identifier, isPresented, needsProof, readsBody } from '#gateway/identity/identifier.ts';
import { Counter, type CoverCounter } from './counter.ts';
import type { ListEntry } from './lists.ts';
import { isSettledByReply } from './policy.ts';
import type { LoadedPolicy, PolicySet } from './policy-set.ts';
import type { Route } from './route.ts';
import { canonicalTarget, caseless, meaningOf, withoutSegmentParameters } from './target.ts';

export interface Cover {
  readonly policies: readonly LoadedPolicy[];
  /** All counters of the policies, each once. The first policy of the file that uses a counter represents it. */
  readonly counters: readonly CoverCounter[];
  readonly identifiers: readonly Identifier[];
  /** Whether some policies count a field of the body. */
  readonly readsBody: boolean;
  readonly hasOverrides: boolean;
  /** Whether all requests of one address have the same charge. */
  readonly isByAddress: boolean;
  readonly hasOutcomes: boolean;
  readonly priority: Priority;
}

type Match =
  | {
      readonly ok: true;
      readonly target: string;
      readonly path: string;
      /** The policies that apply; null if there are none. */
      readonly cover: Cover | null;
      /** The entry of the list deny that matches the route; null if there is none. */
      readonly closedBy: ListEntry | null;
      /** Whether the policy file names the route: in a policy, in `exclude` or in `deny`. */
      readonly isNamed: boolean;
    }
  | { readonly ok: false; readonly reason: string };

export type Matcher = (method: string, rawTarget: string) => Match;

/** Maximum number of cached targets. The cache is emptied when full. */
const CACHE_TARGETS_MAX = 4096;
const CACHE_TARGET_LENGTH_MAX = 256;

export function createMatcher(set: PolicySet): Matcher {
  const policies = new RouteTree<LoadedPolicy>(
    set.policies.map((policy) => [policy.route, policy]),
    set.ignoreCase,
  );
  const exclusions = new RouteTree<true>(
    set.exclude.map((route) => [route, true]),
    set.ignoreCase,
  );
  const closed = new RouteTree<ListEntry>(set.lists?.routes ?? [], set.ignoreCase);
  const covers = new Map<string, Cover>();
  const counters = set.policies.map((policy) => ({
    counter: new Counter(policy, false),
    unproven: needsProof(policy.identifier) ? new Counter(policy, true) : null,
  }));
  const cache = new Map<string, Map<string, Match>>();
  let cached = 0;

  /** Policies for one reading of the path; none if an exclusion matches. */
  const applying = (method: string, path: string): readonly LoadedPolicy[] =>
    exclusions.find(method, path).length > 0 ? [] : policies.find(method, path);

  const coverOf = (found: readonly LoadedPolicy[]): Cover | null => {
    if (found.length === 0) return null;
    const sorted = [...new Set(found)].sort((a, b) => a.index - b.index);
    const key = sorted.map((policy) => policy.index).join();
    let cover = covers.get(key);
    if (cover === undefined) {
      const identifiers = [...new Set(sorted.map((policy) => policy.identifier))];
      const counted = [...new Set(sorted.map((policy) => policy.bucketId))].flatMap((bucketId) => {
        const of = counters[bucketId];
        return of === undefined
          ? []
          : [
              {
                ...of,
                identifierAt: identifiers.indexOf(of.counter.policy.identifier),
                cost: sorted.find((policy) => policy.bucketId === bucketId)?.cost ?? of.counter.policy.cost,
              },
            ];
      });
      cover = {
        policies: sorted,
        counters: counted,
        identifiers,
        readsBody: identifiers.some(readsBody),
        hasOverrides: sorted.some(({ overrides }) => overrides !== null),
        isByAddress:
          !identifiers.some(isPresented) &&
          counted.every(({ cost }) => cost.kind === 'units' || cost.kind === 'reply-header') &&
          !sorted.some(({ overrides }) => overrides !== null && overrides.programs.size > 0),
        hasOutcomes: counted.some(({ counter }) => isSettledByReply(counter.policy)),
        priority: highestOf(sorted.map(({ priority }) => priority)),
      };
      covers.set(key, cover);
    }
    return cover;
  };

  const match: Matcher = (method, rawTarget) => {
    const target = canonicalTarget(rawTarget);
    if (!target.ok) return target;
    const { path, query } = target;
    const stripped = withoutSegmentParameters(path);
    const readings = stripped === null ? [path] : [path, stripped];
    const cover = coverOf(readings.flatMap((reading) => applying(method, reading)));
    const closing = readings.flatMap((reading) => closed.find(method, reading));
    // Without a policy the trailing slash is forwarded: a site that redirects /docs to /docs/ would loop otherwise.
    // With a policy the upstream gets exactly the path that was matched.
    const slash = target.trailingSlash && cover === null ? '/' : '';
    const [closedBy = null] = closing.sort((a, b) => a.line - b.line);
    const isNamed =
      cover !== null ||
      closedBy !== null ||
      readings.some((reading) => exclusions.find(method, reading).length > 0);
    return { ok: true, target: path + slash + query, path, cover, closedBy, isNamed };
  };

  return (method, rawTarget) => {
    const effective = method === 'HEAD' ? 'GET' : method;
    let known = cache.get(effective);
    const hit = known?.get(rawTarget);
    if (hit !== undefined) return hit;
    const result = match(effective, rawTarget);
    if (rawTarget.length <= CACHE_TARGET_LENGTH_MAX) {
      if (cached >= CACHE_TARGETS_MAX) {
        cache.clear();
        known = undefined;
        cached = 0;
      }
      if (known === undefined) {
        known = new Map();
        cache.set(effective, known);
      }
      known.set(rawTarget, result);
      cached++;
    }
    return result;
  };
}

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

class RouteTree<T> {
  readonly #root: Node<T> = newNode();
  readonly #ignoresCase: boolean;

  constructor(routes: Iterable<readonly [Route, T]>, ignoresCase: boolean) {
    this.#ignoresCase = ignoresCase;
    for (const [route, value] of routes) {
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
  }

  find(method: string, path: string): readonly T[] {
    const found: T[] = [];
    let segments = path === '/' ? [] : path.slice(1).split('/');
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
  if (node.param !== null) walk(node.param, segments, at + 1, method, found);
}

function collect<T>(entries: readonly Entry<T>[], method: string, found: T[]): void {
  for (const { methods, value } of entries) if (methods === null || methods.has(method)) found.push(value);
}
