/** Reply headers that are the gateway's own, whoever writes the reply. */

/** Marks a 429 as a denial by the gateway's policies. Nobody else may set it. */
export const RATELIMITED_HEADER = 'x-gateway-ratelimited';

/** Names the decision that stands behind a refusal: `floodgate why` tells more of it. Nobody else may set it. */
export const DECISION_HEADER = 'x-gateway-decision';

/** Set on covered routes, lower-case: an upstream's copies make room. */
export const LIMIT_HEADERS: readonly string[] = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'ratelimit-policy',
  'ratelimit',
];

export const EXPOSE_HEADERS: readonly string[] = [
  'Access-Control-Expose-Headers',
  [...LIMIT_HEADERS, RATELIMITED_HEADER, DECISION_HEADER, 'retry-after'].join(', '),
];

export const CORS_HEADERS: readonly string[] = ['Access-Control-Allow-Origin', '*', ...EXPOSE_HEADERS];

/** Called from browsers on other origins. In any case, since some applications ignore it. */
const CLIENT_ROUTE = /^\/api\/v\d+\/client(?:\/|$)/i;

/** @param path canonical */
export function isClientRoute(path: string): boolean {
  return CLIENT_ROUTE.test(path);
}

/** By which "floodgate doctor" knows its own requests; removed from all others as every `x-gateway-` field. */
export const PROBE_HEADER = 'x-gateway-probe';
