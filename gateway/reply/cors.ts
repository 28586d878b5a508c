/**
 * Decides for every reply that the gateway writes itself which pages of other origins may read it
 * (https://fetch.spec.whatwg.org/#http-cors-protocol). Without these headers a browser shows its page a network error
 * instead of the 429. Replies of the application keep the headers that the application gives them.
 */

import { valuesOf } from '#gateway/http/header-fields.ts';
import {
  DECISION_HEADER,
  EXPOSE_HEADER,
  isClientRoute,
  LIMIT_HEADERS,
  RATELIMITED_HEADER,
} from '#gateway/http/header-names.ts';
import { originIn } from '#gateway/http/page-origin.ts';
import { ANY_ORIGIN, type OriginRule, type PolicySet } from '#gateway/policy/policy-set.ts';
import { RouteTree } from '#gateway/policy/route-tree.ts';

/** What pages of other origins may read of a reply. */
export interface Cors {
  /** For a reply of the gateway, alternating names and values. */
  readonly headers: readonly string[];
  /** The origin whose pages may read the reply: that of the request, `*` for all, null for none. */
  readonly origin: string | null;
  /** Whether they may also read it if they sent cookies. */
  readonly credentials: boolean;
  /** Whether another origin could get other headers. */
  readonly varies: boolean;
  /** Whether replies of the application on this route expose the limit headers. It does not depend on the page. */
  readonly exposesLimits: boolean;
  /** Whether this is a route of survey widgets, which discard their answers after 403. */
  readonly isClientRoute: boolean;
}

/** A preflight names in it the method of the request that it asks about. */
export const REQUEST_METHOD = 'access-control-request-method';
const EXPOSED = [...LIMIT_HEADERS, RATELIMITED_HEADER, DECISION_HEADER, 'retry-after'].join(', ');

function corsOf(choice: Omit<Cors, 'headers'>): Cors {
  const headers: string[] = [];
  if (choice.origin !== null)
    headers.push('Access-Control-Allow-Origin', choice.origin, EXPOSE_HEADER, EXPOSED);
  if (choice.credentials) headers.push('Access-Control-Allow-Credentials', 'true');
  if (choice.varies) headers.push('Vary', 'Origin');
  return { ...choice, headers };
}

const NOTHING = {
  origin: null,
  credentials: false,
  varies: false,
  exposesLimits: false,
  isClientRoute: false,
};

export const NO_CORS = corsOf(NOTHING);
const CLIENT_ROUTE = corsOf({ ...NOTHING, origin: ANY_ORIGIN, exposesLimits: true, isClientRoute: true });
/** Replies before the route is known. They say nothing that depends on the client, so every page may read them. */
export const UNREAD = corsOf({ ...NOTHING, origin: ANY_ORIGIN });

/** The key `replies: cors` of a policy file, and the client routes, which need no key. */
export class CorsTable {
  /** Whether the origin of a request can change the headers of the reply. */
  readonly varies: boolean;
  readonly #rules: readonly OriginRule[];
  readonly #everywhere: readonly OriginRule[];
  /** The rules of some routes; null if all rules are for every route. */
  readonly #byRoute: RouteTree<OriginRule> | null;

  constructor({ origins, ignoreCase }: Pick<PolicySet, 'origins' | 'ignoreCase'>) {
    const rules = origins ?? [];
    const byRoute = rules.flatMap((rule) => (rule.route === null ? [] : [[rule.route, rule] as const]));
    this.varies = rules.some(({ origin }) => origin !== ANY_ORIGIN);
    this.#rules = rules;
    this.#everywhere = rules.filter(({ route }) => route === null);
    this.#byRoute = byRoute.length === 0 ? null : new RouteTree(byRoute, ignoreCase);
  }

  /**
   * @param path canonical
   * @param rawHeaders alternating names and values
   */
  on(method: string, path: string, rawHeaders: readonly string[]): Cors {
    const isWidget = isClientRoute(path);
    if (this.#rules.length === 0) return isWidget ? CLIENT_ROUTE : NO_CORS;
    const [wanted = method] = method === 'OPTIONS' ? valuesOf(rawHeaders, REQUEST_METHOD) : [];
    const found = this.#byRoute?.find(wanted === 'HEAD' ? 'GET' : wanted, path) ?? [];
    const rules = found.length === 0 ? this.#everywhere : [...this.#everywhere, ...found];
    const exposesLimits = isWidget || rules.length > 0;
    return this.#choose(rules, originIn(rawHeaders), isWidget, { exposesLimits, isClientRoute: isWidget });
  }

  /**
   * For replies before the route is known. The rules of all routes count.
   *
   * @param rawHeaders alternating names and values; empty if they could not be read
   */
  unread(rawHeaders: readonly string[]): Cors {
    return this.varies ? this.forOrigin(originIn(rawHeaders)) : UNREAD;
  }

  /** Like `unread`. @param origin null if the origin is unknown */
  forOrigin(origin: string | null): Cors {
    return this.#choose(this.#rules, origin, true, UNREAD);
  }

  #choose(
    rules: readonly OriginRule[],
    origin: string | null,
    isForAll: boolean,
    { exposesLimits, isClientRoute }: Pick<Cors, 'exposesLimits' | 'isClientRoute'>,
  ): Cors {
    const named = rules.filter((rule) => rule.origin === origin);
    const anyOrigin = isForAll || rules.some((rule) => rule.origin === ANY_ORIGIN) ? ANY_ORIGIN : null;
    return corsOf({
      origin: named[0]?.origin ?? anyOrigin,
      credentials: named.some(({ credentials }) => credentials),
      varies: rules.some((rule) => rule.origin !== ANY_ORIGIN),
      exposesLimits,
      isClientRoute,
    });
  }
}
