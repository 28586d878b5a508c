/** Names of the gateway's own headers. */

/** Marks a 429 as the gateway's. Removed from replies of the upstream. */
export const RATELIMITED_HEADER = 'x-gateway-ratelimited';

/** The id of a refusal, for `floodgate why`. Removed from replies of the upstream. */
export const DECISION_HEADER = 'x-gateway-decision';

/** Tells the application which policies with `mode: mark` a request is over. Removed from requests of clients. */
export const OVER_HEADER = 'x-gateway-over';

/** Headers that the gateway sets on covered routes, where they replace those of the upstream. In lower case. */
export const LIMIT_HEADERS: readonly string[] = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'ratelimit-policy',
  'ratelimit',
];

export const EXPOSE_HEADER = 'Access-Control-Expose-Headers';

/** Added to the upstream's replies for pages of other origins. The application decides which of them may read these. */
export const EXPOSED_LIMITS = LIMIT_HEADERS.join(', ');

/** @param value of Access-Control-Expose-Headers in a reply of the upstream */
export function exposesAll(value: string): boolean {
  return value.split(',').some((name) => name.trim() === '*');
}

/** Routes that browsers on other origins call. Upper case matches too, because some applications ignore case. */
const CLIENT_ROUTE = /^\/api\/v\d+\/client(?:\/|$)/i;

/** @param path canonical */
export function isClientRoute(path: string): boolean {
  return CLIENT_ROUTE.test(path);
}

/** The header of a probe by `floodgate doctor`. */
export const PROBE_HEADER = 'x-gateway-probe';
