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

export const EXPOSE_HEADER = 'Access-Control-Expose-Headers';

/** On the gateway's own replies to browsers on other origins. */
export const CORS_HEADERS: readonly string[] = [
  'Access-Control-Allow-Origin',
  '*',
  EXPOSE_HEADER,
  [...LIMIT_HEADERS, RATELIMITED_HEADER, DECISION_HEADER, 'retry-after'].join(', '),
];

/** Added to the application's own replies there: which origins may read them is for the application to say. */
export const EXPOSED_LIMITS = LIMIT_HEADERS.join(', ');

/** @param value of the application's Access-Control-Expose-Headers: do browsers see every header already? */
export function exposesAll(value: string): boolean {
  return value.split(',').some((name) => name.trim() === '*');
}

/** Called from browsers on other origins. In any case, since some applications ignore it. */
const CLIENT_ROUTE = /^\/api\/v\d+\/client(?:\/|$)/i;

/** @param path canonical */
export function isClientRoute(path: string): boolean {
  return CLIENT_ROUTE.test(path);
}

/** By which "floodgate doctor" knows its own requests; removed from all others as every `x-gateway-` field. */
export const PROBE_HEADER = 'x-gateway-probe';
