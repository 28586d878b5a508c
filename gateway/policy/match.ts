/**
 * Finds the policies that apply to a request. All routes form a tree of path segments; one walk collects every match.
 * Requests with the same set of policies share one `Cover` object, so facts about the set are computed once.
 */

import { highestOf, type Priority } from '#gateway/bounds/priority.ts';
import { isInQuery } from '#gateway/identity/credential.ts';
import {
  type Identifier,
  isPresented,
  needsProof,
  partsOf,
  type SimpleIdentifier,
} from '#gateway/identity/identifier.ts';
import { hasTooManyParameters, TOO_MANY_PARAMETERS } from '#gateway/identity/pairs.ts';
import { type Asked, isConditional, unmetOf } from './condition.ts';
import { Counter, type CoverCounter } from './counter.ts';
import type { Group } from './groups.ts';
import type { ListEntry } from './lists.ts';
import { countsBody, isSettledByReply, type Policy } from './policy.ts';
import type { LoadedPolicy, PolicySet } from './policy-set.ts';
import type { HostRoute, Route } from './route.ts';
import { RouteTree } from './route-tree.ts';
import { readTarget } from './target.ts';

export interface Cover {
  readonly policies: readonly LoadedPolicy[];
  /** All counters of the policies, each once. The first policy that uses a counter and matches represents it. */
  readonly counters: readonly CoverCounter[];
  readonly identifiers: readonly Identifier[];
  /** The identifiers of which policies count different values. */
  readonly distinct: readonly SimpleIdentifier[];
  /** Whether some policies count a field of the body. */
  readonly readsBody: boolean;
  readonly hasOverrides: boolean;
  /** The groups of clients that policies count. */
  readonly groups: readonly Group[];
  /** Whether all requests of one address have the same charge. */
  readonly isByAddress: boolean;
  readonly hasOutcomes: boolean;
  readonly priority: Priority;
  /** Whether some policies have conditions besides their route. */
  readonly isConditional: boolean;
  /** Whether some policies count a part of the path. */
  readonly readsPath: boolean;
  /** Whether some policies look for parameters of the query. */
  readonly readsQuery: boolean;
}

/** The routes of the policy file say this about a request. */
export interface Match {
  readonly ok: true;
  /** The path and query that are forwarded. */
  readonly target: string;
  /** The plain reading of the path. */
  readonly path: string;
  /** All readings of the path, the plain one first. */
  readonly paths: readonly string[];
  /**
   * The result of each reading, if there are several and a policy counts a part of the path. Otherwise empty.
   */
  readonly readings: readonly PathReading[];
  /** The policies that apply; null if there are none. */
  readonly cover: Cover | null;
  /** The policies whose route matches and whose conditions do not hold. */
  readonly unmet: readonly Unmet[];
  /** The entry of the list deny that matches the route; null if there is none. */
  readonly closedBy: ListEntry | null;
  /** The first route of `exclude` that matches; null if there is none. */
  readonly excludedBy: Route | null;
}

/** A reading of the path, and the policies that apply to it. */
export interface PathReading {
  readonly path: string;
  readonly cover: Cover | null;
}

interface NoMatch {
  readonly ok: false;
  readonly reason: string;
}

export interface Unmet {
  readonly policy: LoadedPolicy;
  readonly reason: string;
}

/**
 * @param rawHeaders alternating names and values, which some conditions look at
 * @param host the canonical host, if some conditions look at it
 */
export type Matcher = (
  method: string,
  rawTarget: string,
  rawHeaders?: readonly string[],
  host?: string,
) => Match | NoMatch;

/** Maximum number of cached targets. The cache is emptied when full. */
const CACHE_TARGETS_MAX = 4096;
const CACHE_TARGET_LENGTH_MAX = 256;
/**
 * Maximum number of remembered covers. Requests choose which conditions hold, so n conditions have 2^n covers. They are
 * forgotten together.
 */
const COVERS_MAX = 1024;

const TOO_MANY: NoMatch = { ok: false, reason: TOO_MANY_PARAMETERS };
const NO_HEADERS: readonly string[] = [];
const NONE: readonly Unmet[] = [];
const ONE_READING: readonly PathReading[] = [];

export function createMatcher(set: PolicySet): Matcher {
  const coverOf = coverFinder(set);
  const route = router(set, coverOf);
  const isByHost = [...set.exclude, ...closedIn(set).map(([closed]) => closed)].some(
    ({ hosts }) => hosts !== null,
  );
  /** Matches by the routes alone: by method, and by host where one matters, then by target. */
  const cache = new Map<string, Map<string, Match | NoMatch>>();
  let cached = 0;
  const routed = (method: string, rawTarget: string, host: string): Match | NoMatch => {
    const key = isByHost ? `${method} ${host}` : method;
    let known = cache.get(key);
    const hit = known?.get(rawTarget);
    if (hit !== undefined) return hit;
    const result = route(method, rawTarget, host);
    if (rawTarget.length > CACHE_TARGET_LENGTH_MAX) return result;
    if (cached >= CACHE_TARGETS_MAX) {
      cache.clear();
      known = undefined;
      cached = 0;
    }
    known ??= new Map();
    cache.set(key, known);
    known.set(rawTarget, result);
    cached++;
    return result;
  };
  return (method, rawTarget, rawHeaders = NO_HEADERS, host = '') => {
    const effective = method === 'HEAD' ? 'GET' : method;
    const found = routed(effective, rawTarget, host);
    const cover = found.ok ? found.cover : null;
    if (!found.ok || cover === null) return found;
    if (cover.readsQuery && hasTooManyParameters(found.target)) return TOO_MANY;
    if (!cover.isConditional) return found;
    return narrowed(found, cover, { ...found, method: effective, rawHeaders, host }, coverOf);
  };
}

function closedIn({ lists }: PolicySet): readonly Closed[] {
  return lists?.routes ?? [];
}

/** Leaves out the policies whose conditions do not hold. */
function narrowed(found: Match, cover: Cover, asked: Asked, coverOf: CoverFinder): Match {
  const unmet: Unmet[] = [];
  const applying = cover.policies.filter((policy) => {
    const reason = unmetOf(policy, asked);
    if (reason !== null) unmet.push({ policy, reason });
    return reason === null;
  });
  const readings = found.readings.map(({ path, cover: all }) => ({
    path,
    cover: coverOf(all?.policies.filter((policy) => applying.includes(policy)) ?? []),
  }));
  return { ...found, cover: coverOf(applying), readings, unmet };
}

/** Finds the policies of a request by its method, its path and its host. */
function router(
  set: PolicySet,
  coverOf: CoverFinder,
): (method: string, target: string, host: string) => Match | NoMatch {
  const treeOf = <T>(routes: readonly (readonly [Route, T])[]) => new RouteTree<T>(routes, set.ignoreCase);
  const policies = treeOf(set.policies.map((policy) => [policy.route, policy]));
  const exclusions = treeOf<Exclusion>(set.exclude.map((route, i) => [route, [route, i]]));
  const closed = treeOf<Closed>(closedIn(set).map((entry) => [entry[0], entry]));
  return (method, rawTarget, host) => {
    const read = readTarget(rawTarget);
    if (!read.ok) return read;
    const { forwarded: target, path, others } = read;
    const paths = [path, ...others];
    const applies = ([{ hosts }]: Exclusion | Closed): boolean => hosts === null || hosts.has(host);
    const [closedBy = null] = paths
      .flatMap((reading) => closed.find(method, reading).filter(applies))
      .map(([, entry]) => entry)
      .sort((a, b) => a.line - b.line);
    const excluding = paths.map((reading) => exclusions.find(method, reading).filter(applies));
    // The application may take the path in any of these ways, so an exclusion needs all of them.
    const isExcluded = excluding.every((found) => found.length > 0);
    const first = Math.min(...excluding.flatMap((found) => found.map(([, i]) => i)));
    const excludedBy = isExcluded ? (set.exclude[first] ?? null) : null;
    const found = isExcluded ? [] : paths.map((reading) => policies.find(method, reading));
    const cover = coverOf(found.flat());
    const readings =
      cover?.readsPath === true && paths.length > 1
        ? paths.map((path, i) => ({ path, cover: coverOf(found[i] ?? []) }))
        : ONE_READING;
    return { ok: true, target, path, paths, readings, cover, unmet: NONE, closedBy, excludedBy };
  };
}

/** A route of `exclude`, and its place there. */
type Exclusion = readonly [HostRoute, number];
type Closed = readonly [HostRoute, ListEntry];

type CoverFinder = (found: readonly LoadedPolicy[]) => Cover | null;

/** Returns the Cover of a set of policies, the same one for the same set while it is remembered. */
function coverFinder({ policies, planClaim }: PolicySet): CoverFinder {
  const covers = new Map<string, Cover>();
  const counters = policies.map((policy) => ({
    counter: new Counter(policy, false),
    unproven: needsProof(policy.identifier) ? new Counter(policy, true) : null,
  }));
  return (found) => {
    if (found.length === 0) return null;
    const sorted = [...new Set(found)].sort((a, b) => a.index - b.index);
    const key = sorted.map((policy) => policy.index).join();
    let cover = covers.get(key);
    if (cover === undefined) {
      cover = newCover(sorted, counters, planClaim);
      if (covers.size >= COVERS_MAX) covers.clear();
      covers.set(key, cover);
    }
    return cover;
  };
}

/** Returns the identifiers whose proven credentials the policy does not count. */
export function exemptBy({ unless, onlyFor }: Policy): Identifier[] {
  return [...new Set([...(unless === null ? [] : [unless]), ...(onlyFor?.keys ?? [])])];
}

/**
 * @param sorted policies in the order of the file
 * @param counters the counter of each policy of the file
 * @param planClaim the claim in which tokens name plans; null if none
 */
function newCover(
  sorted: readonly LoadedPolicy[],
  counters: readonly Pick<CoverCounter, 'counter' | 'unproven'>[],
  planClaim: string | null,
): Cover {
  const identifiers = [
    ...new Set([...sorted.map(({ identifier }) => identifier), ...sorted.flatMap(exemptBy)]),
  ];
  const distinct = [...new Set(sorted.flatMap((policy) => policy.distinct ?? []))];
  // Replies and logs name the first policy that matched, of those that share a counter.
  const named = sorted.filter(
    ({ bucketId }, i) => sorted.findIndex((other) => other.bucketId === bucketId) === i,
  );
  const counted = named.flatMap((matched) => {
    const of = counters[matched.index];
    if (of === undefined) return [];
    return [
      {
        ...of,
        identifierAt: identifiers.indexOf(matched.identifier),
        exempt: exemptBy(matched).map((identifier) => ({
          at: identifiers.indexOf(identifier),
          isProof: !needsProof(identifier),
        })),
        valueAt: matched.distinct === null ? -1 : distinct.indexOf(matched.distinct),
        cost: matched.cost,
      },
    ];
  });
  const groups = new Map(
    sorted.flatMap(({ onlyFor }) => (onlyFor === null ? [] : [[onlyFor.words, onlyFor]])),
  );
  return {
    policies: sorted,
    counters: counted,
    groups: [...groups.values()],
    identifiers,
    distinct,
    readsBody: sorted.some(countsBody),
    hasOverrides: sorted.some(({ overrides }) => overrides !== null),
    isByAddress:
      !identifiers.some(isPresented) &&
      distinct.length === 0 &&
      groups.size === 0 &&
      !counted.some(({ cost }) => cost.kind === 'header' || cost.kind === 'body-bytes') &&
      !sorted.some(
        ({ overrides }) => overrides !== null && (planClaim !== null || overrides.clients.programs.size > 0),
      ),
    hasOutcomes: counted.some(({ counter }) => isSettledByReply(counter.policy)),
    priority: highestOf(sorted.map(({ priority }) => priority)),
    isConditional: sorted.some(isConditional),
    readsQuery:
      sorted.some(({ query }) => query !== null) ||
      [...identifiers, ...distinct].flatMap(partsOf).some(isInQuery),
    readsPath: [...identifiers.flatMap(partsOf), ...distinct].some(({ kind }) => kind === 'path'),
  };
}
