/**
 * Which policies cover a request? The routes of one policy file make a tree of segments; matching walks it once and
 * collects every policy on the way, because all of them apply. Requests with the same policies get the
 * very same `Cover` object, so what follows from the set is worked out once, not per request.
 */

import { type Identifier, needsProof } from '#gateway/identity/identifier.ts';
import { Counter } from './counter.ts';
import type { Cost, Policy, PolicySet } from './policy.ts';
import type { Route } from './route.ts';
import { canonicalTarget, caseless, meaningOf, withoutSegmentParameters } from './target.ts';

/** A set of policies that applies to a request, in file order. */
export interface Cover {
  readonly policies: readonly Policy[];
  /** What is counted: each of their counters once, as the first row in the file that uses it. */
  readonly counters: readonly CoverCounter[];
  /** Whose identities are needed to charge them, each once. */
  readonly identifiers: readonly Identifier[];
  /** Some of them have overrides. */
  readonly hasOverrides: boolean;
  /** Only addresses are counted. */
  readonly isByAddress: boolean;
  /** What the script for plain charges understands: fixed windows of one unit each. */
  readonly isPlain: boolean;
  /** Some of its counters do not count every request. */
  readonly hasOutcomes: boolean;
  /** Every request costs the same. */
  readonly hasFixedCosts: boolean;
}

export interface CoverCounter {
  readonly counter: Counter;
  /** Counts what an address spends on unproven credentials; null where nothing has to be proven. */
  readonly unproven: Counter | null;
  /** Which of `Cover.identifiers` is counted. */
  readonly identifierAt: number;
  /** Of the first row that uses the counter and covers the request. */
  readonly cost: Cost;
}

type Match =
  | {
      readonly ok: true;
      /** What is sent to the upstream: the canonical path and the query as it came. */
      readonly target: string;
      readonly path: string;
      /** null: nothing covers this request. */
      readonly cover: Cover | null;
    }
  | { readonly ok: false; readonly reason: string };

export type Matcher = (method: string, rawTarget: string) => Match;

/** Targets seen before are not parsed again. Bounded in number and in length; emptied when full. */
const CACHE_TARGETS_MAX = 4096;
const CACHE_TARGET_LENGTH_MAX = 256;

export function createMatcher(set: PolicySet): Matcher {
  const policies = new RouteTree<Policy>(
    set.policies.map((policy) => [policy.route, policy]),
    set.ignoreCase,
  );
  const exclusions = new RouteTree<true>(
    set.exclude.map((route) => [route, true]),
    set.ignoreCase,
  );
  const covers = new Map<string, Cover>();
  const counters = set.policies.map((policy) => ({
    counter: new Counter(policy, false),
    unproven: needsProof(policy.identifier) ? new Counter(policy, true) : null,
  }));
  const cache = new Map<string, Map<string, Match>>();
  let cached = 0;

  /** The policies of one reading of the path; none when the reading is excluded. */
  const applying = (method: string, path: string): readonly Policy[] =>
    exclusions.find(method, path).length > 0 ? [] : policies.find(method, path);

  const coverOf = (found: readonly Policy[]): Cover | null => {
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
        hasOverrides: sorted.some(({ overrides }) => overrides !== null),
        isByAddress: identifiers.every(({ kind }) => kind === 'address'),
        isPlain: counted.every(({ counter, cost }) => counter.isPlain && isOne(cost)),
        hasOutcomes: counted.some(({ counter }) => counter.policy.count !== 'request'),
        hasFixedCosts: counted.every(({ cost }) => cost.kind === 'units'),
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
    const found = applying(method, path);
    const cover = coverOf(stripped === null ? found : [...found, ...applying(method, stripped)]);
    // Where nothing is counted the trailing slash goes on as it came: a site that redirects /docs to /docs/ must not
    // be sent in circles. Where something is counted, upstream gets the one path that was matched.
    const slash = target.trailingSlash && cover === null ? '/' : '';
    return { ok: true, target: path + slash + query, path, cover };
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

function isOne(cost: Cost): boolean {
  return cost.kind === 'units' && cost.units === 1;
}

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  param: Node<T> | null;
  /** Values whose route ends here. */
  readonly here: Entry<T>[];
  /** Values whose route takes all that follows, also nothing. */
  readonly below: Entry<T>[];
}

interface Entry<T> {
  readonly methods: ReadonlySet<string> | null;
  readonly value: T;
}

class RouteTree<T> {
  readonly #root: Node<T> = newNode();
  readonly #ignoresCase: boolean;

  /** @param ignoresCase so do all of the routes */
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

  /** @param path canonical */
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
