/**
 * How long an idle connection stays open. If the gateway closes one first, the request that a proxy sends at this moment
 * is lost, and a proxy must not repeat a POST. So a proxy has to be the one that closes it.
 */
import type { Bound } from '#gateway/bounds/bounds.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Millis } from '#shared/clock.ts';

/** How long a connection may rest. */
export interface Times {
  /** Before its first request. */
  readonly unusedMs: Millis;
  /** Between two requests. */
  readonly idleMs: Millis;
}

/** Time for a header section, and until its first byte. */
export const HEADERS_TIMEOUT_MS: Millis = 10_000;
/** Maximum time for a request with its body. It allows 100 MB at 28 KB/s. A silent client is cut much earlier. */
export const REQUEST_TIMEOUT_MS: Millis = 3_600_000;
/** Proxies keep idle connections for up to 600 s (Google's load balancers), clients rarely longer than a minute. */
const PROXIES_MS: Millis = 620_000;
const CLIENTS_MS: Millis = 65_000;

/**
 * Many proxies open connections before they need them. With a hop count, everybody who reaches the port counts as a
 * proxy, and could fill it with connections that say nothing.
 *
 * @param keepAliveMs the same time for all connections; null for the usual ones
 * @returns the times for connections of clients, and for those of trusted proxies
 */
export function keepAliveOf(keepAliveMs: Millis | null, { kind }: Pick<ProxyTrust, 'kind'>) {
  const clients = { unusedMs: HEADERS_TIMEOUT_MS, idleMs: keepAliveMs ?? CLIENTS_MS };
  const idleMs = keepAliveMs ?? PROXIES_MS;
  const unusedMs = kind === 'cidrs' ? Math.max(HEADERS_TIMEOUT_MS, idleMs) : HEADERS_TIMEOUT_MS;
  return { clients, proxies: { unusedMs, idleMs } };
}

/** From this part of all connections on, each one closes after its reply, which says so. */
const SCARCE_PART = 7 / 8;

export function areScarce({ held, limit }: Bound): boolean {
  return held > Math.ceil(limit * SCARCE_PART);
}
