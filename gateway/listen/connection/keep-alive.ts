/**
 * How long an idle connection stays open. If the gateway closes one first, the request that a proxy sends at this moment
 * is lost, and a proxy must not repeat a POST. So a proxy has to be the one that closes it.
 */
import type { Bound } from '#gateway/bounds/bounds.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Millis } from '#shared/clock.ts';

export interface KeepAlive {
  /** For connections of a trusted proxy. */
  readonly proxiesMs: Millis;
  readonly clientsMs: Millis;
  /** For connections of a trusted proxy that it has not used yet. */
  readonly unusedMs: Millis;
}

/** Proxies keep idle connections for up to 600 s (Google's load balancers), clients rarely longer than a minute. */
const KEEP_ALIVE = { proxiesMs: 620_000, clientsMs: 65_000 };

/**
 * Many proxies open connections before they need them. With a hop count, everybody who reaches the port counts as a
 * proxy, and could fill it with connections that say nothing.
 *
 * @param keepAliveMs the same time for all connections; null for the usual ones
 */
export function keepAliveOf(keepAliveMs: Millis | null, { kind }: Pick<ProxyTrust, 'kind'>): KeepAlive {
  const times = keepAliveMs === null ? KEEP_ALIVE : { proxiesMs: keepAliveMs, clientsMs: keepAliveMs };
  return { ...times, unusedMs: kind === 'cidrs' ? times.proxiesMs : 0 };
}

/** From this part of all connections on, each one closes after its reply, which says so. */
const SCARCE_PART = 7 / 8;

export function areScarce({ held, limit }: Bound): boolean {
  return held > Math.ceil(limit * SCARCE_PART);
}
