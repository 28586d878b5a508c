/**
 * Envoy Gateway: the limits of a BackendTrafficPolicy, on the routes of the HTTPRoutes that it targets. As in a policy
 * file, all matching rules apply, each with a counter for each route.
 */
import {
  BY_ADDRESS,
  byHeader,
  ImportError,
  Imported,
  IPV6_NOTE,
  limitPer,
  onlyOne,
  type Who,
} from './imported.ts';
import { exactPattern, expressionPaths, narrower, type Paths, prefixPattern } from './path-pattern.ts';
import type { Tree } from './tree.ts';

/** The requests that one match of an HTTPRoute, or one rule, selects. */
interface Requests extends Paths {
  readonly methods: readonly string[] | null;
}

interface Target extends Requests {
  readonly what: string;
}

const ALL: Requests = { methods: null, paths: ['*'], notes: [] };
const ANYWHERE: Target = { ...ALL, what: 'every route' };
const NO_ROUTE = 'its HTTPRoute is not in this file: if it has only some paths, write them as route';

/** @throws ImportError if the file has nothing of Envoy Gateway */
export function importEnvoy(documents: readonly Tree[]): Imported {
  const resources = documents.flatMap((document) =>
    /List$/.test(document.at('kind').text ?? '') ? document.at('items').items() : [document],
  );
  const ofKind = (kind: string): Tree[] => resources.filter((one) => one.at('kind').text === kind);
  const policies = ofKind('BackendTrafficPolicy');
  if (policies.length === 0) throw new ImportError('it has no BackendTrafficPolicy');
  const reading = new Reading(ofKind('HTTPRoute'));
  for (const policy of policies) reading.policy(policy);
  return reading.imported;
}

class Reading {
  readonly imported = new Imported();
  readonly #routes: readonly Tree[];

  constructor(routes: readonly Tree[]) {
    this.#routes = routes;
  }

  policy(policy: Tree): void {
    const name = policy.at('metadata', 'name').text ?? 'BackendTrafficPolicy';
    const rateLimit = policy.at('spec', 'rateLimit');
    if (!rateLimit.isPresent) return;
    const targets = this.#targets(policy);
    for (const kind of ['global', 'local']) {
      const rules = rateLimit.at(kind, 'rules').items();
      for (const [i, rule] of rules.entries()) {
        this.#rule(rule, `rule ${i + 1} of ${name}`, name, kind === 'local', targets);
      }
    }
  }

  #targets(policy: Tree): Target[] {
    const refs = [...policy.at('spec', 'targetRefs').items(), policy.at('spec', 'targetRef')];
    return refs.flatMap((ref): Target[] => {
      const kind = ref.at('kind').text;
      const name = ref.at('name').text ?? '';
      if (kind === 'Gateway') return [{ ...ALL, what: `Gateway ${name}` }];
      if (kind !== 'HTTPRoute') {
        if (ref.isPresent)
          this.imported.refuse(ref, `targetRef ${kind} ${name}`, 'only HTTPRoute and Gateway have paths');
        return [];
      }
      const route = this.#routes.find((one) => one.at('metadata', 'name').text === name);
      if (route === undefined) {
        return [{ ...ALL, notes: [NO_ROUTE], what: `HTTPRoute ${name}` }];
      }
      const section = ref.at('sectionName').text;
      return route
        .at('spec', 'rules')
        .items()
        .filter((rule) => section === null || rule.at('name').text === section)
        .flatMap((rule, i) => this.#matches(rule, `rule ${i + 1} of HTTPRoute ${name}`));
    });
  }

  #matches(rule: Tree, what: string): Target[] {
    const matches = rule.at('matches').items();
    if (matches.length === 0) return [{ ...ALL, what }];
    return matches.flatMap((match): Target[] => {
      for (const condition of ['headers', 'queryParams']) {
        if (!match.at(condition).isPresent) continue;
        this.imported.refuse(
          match,
          what,
          `its match by ${condition} has no counterpart: a route is methods and a path`,
        );
        return [];
      }
      const path = this.#path(match.at('path'), what);
      const method = match.at('method').text;
      return path === null ? [] : [{ ...path, methods: method === null ? null : [method], what }];
    });
  }

  #rule(rule: Tree, what: string, hint: string, isLocal: boolean, targets: readonly Target[]): void {
    this.imported.begin();
    const group = this.imported.found;
    const limit = limitPer(
      rule.at('limit', 'unit').text ?? '',
      rule.at('limit', 'requests').number,
      'it has no limit with requests and unit',
    );
    if (typeof limit === 'string' || hasCost(rule)) {
      const reason = typeof limit === 'string' ? limit : 'its cost is not carried over: write it with cost';
      this.imported.refuse(rule, what, reason);
      return;
    }
    const selected = this.#select(rule, what);
    if (selected === null) return;
    const { who, requests, notes } = selected;
    const isShared = rule.at('shared').isTrue;
    // A rule that names its paths needs no route object.
    const isBound = requests.paths !== ALL.paths;
    const places = isBound && targets.length === 0 ? [ANYWHERE] : targets;
    const rows = places.flatMap((target) =>
      requests.paths.flatMap((path) =>
        target.paths.flatMap((targetPath) => {
          const both = narrower({ ...requests, path }, { ...target, path: targetPath });
          return both === null ? [] : [{ ...both, target }];
        }),
      ),
    );
    if (rows.length === 0) {
      const reason =
        targets.length === 0
          ? 'it targets no route with a path'
          : 'no route that it targets has such requests';
      this.imported.refuse(rule, what, reason);
      return;
    }
    const isSplit = requests.paths.length > 1 || targets.some(({ paths }) => paths.length > 1);
    for (const { methods, path, target } of rows) {
      this.imported.add({
        hint: `${hint}-${path === '*' ? 'all' : path}`,
        methods,
        path,
        who,
        ...limit,
        // Each Envoy has a bucket with this number of tokens. The shared service counts in windows.
        burst: isLocal ? limit.limit : null,
        mode: rule.at('shadowMode').isTrue ? 'shadow' : 'enforce',
        group:
          rows.length === 1
            ? null
            : isShared
              ? `${hint}-${group}`
              : isSplit
                ? `${hint}-${group}-${target.what}`
                : null,
        source: { line: rule.line, what: `${what}, on ${target.what}` },
        notes: [
          ...notes,
          ...requests.notes,
          ...target.notes.filter((note) => !isBound || note !== NO_ROUTE),
          ...(isLocal ? ['local: there each Envoy counts for itself, here all gateways together'] : []),
          ...limit.notes,
        ],
      });
    }
  }

  /** @returns the counted clients and the requests; null if they cannot be expressed, which is reported */
  #select(
    rule: Tree,
    what: string,
  ): { readonly who: Who; readonly requests: Requests; readonly notes: readonly string[] } | null {
    const refuse = (reason: string): null => {
      this.imported.refuse(rule, what, reason);
      return null;
    };
    const notes: string[] = [];
    const who: Who[] = [];
    let requests = ALL;
    for (const selector of rule.at('clientSelectors').items()) {
      for (const header of selector.at('headers').items()) {
        const name = header.at('name').text ?? '';
        if (header.at('type').text !== 'Distinct' || header.at('invert').isTrue)
          return refuse(
            `it applies to some values of the header ${name}; a limit here applies to every client alike`,
          );
        who.push(byHeader(name));
      }
      const source = selector.at('sourceCIDR');
      if (source.isPresent) {
        const range = source.at('value').text ?? '';
        if (!/\/0$/.test(range) || source.at('invert').isTrue)
          return refuse(`it applies to clients in ${range} only`);
        if (source.at('type').text === 'Distinct') {
          who.push(BY_ADDRESS);
          notes.push(IPV6_NOTE);
        }
      }
      if (selector.at('queryParams').isPresent)
        return refuse(
          'its match by a query parameter is not carried over: { query: NAME } is a source of an identifier',
        );
      const methods = selector.at('methods').items();
      if (methods.some((method) => method.at('invert').isTrue)) return refuse('methods cannot be inverted');
      if (methods.length > 0)
        requests = { ...requests, methods: methods.flatMap((method) => method.at('value').text ?? []) };
      if (selector.at('path').isPresent) {
        const path = this.#path(selector.at('path'), what);
        if (path === null) return null;
        requests = { ...requests, ...path };
      }
    }
    const only = onlyOne(who);
    return typeof only === 'string' ? refuse(only) : { who: only, requests, notes };
  }

  #path(path: Tree, what: string): Paths | null {
    const type = path.at('type').text ?? 'PathPrefix';
    const value = path.at('value').text ?? '/';
    if (path.at('invert').isTrue) {
      this.imported.refuse(path, what, 'paths cannot be inverted');
      return null;
    }
    const pattern =
      type === 'RegularExpression' ? null : type === 'Exact' ? exactPattern(value) : prefixPattern(value);
    const found = type === 'RegularExpression' ? expressionPaths(value) : null;
    if (pattern !== null) return { paths: [pattern], notes: [] };
    if (found === null) this.imported.refuse(path, what, `no route says the same as the path ${value}`);
    return found;
  }
}

function hasCost(rule: Tree): boolean {
  const request = rule.at('cost', 'request');
  return (
    (request.at('number').number ?? 1) !== 1 ||
    request.at('from').text === 'Metadata' ||
    rule.at('cost', 'response').isPresent
  );
}
