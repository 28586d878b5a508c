/** All bounds: the resources that clients hold, and how much of them. */

export interface BoundRow {
  /** The variable that sets the total. Some bounds have none of their own, and follow the one that they belong to. */
  readonly variable: `GATEWAY_${'CONNECTIONS' | 'UPSTREAM_CONNECTIONS' | 'WAITING' | 'STREAMS' | 'UPGRADES'}`;
  /** Part of the variable that is the total; default: all of it. */
  readonly part?: number;
  /** Part of the total that one client may hold. It needs most of a scarce resource, but little of a plentiful one. */
  readonly share: number;
  /** Refusals call it so. */
  readonly held: string;
}

export const BOUNDS = {
  connections: { variable: 'GATEWAY_CONNECTIONS', share: 1 / 16, held: 'open connections' },
  upstream_connections: {
    variable: 'GATEWAY_UPSTREAM_CONNECTIONS',
    share: 1 / 4,
    held: 'requests in progress',
  },
  waiting: { variable: 'GATEWAY_WAITING', share: 1 / 16, held: 'waiting requests' },
  /** An upload holds its connection for longer, and the application works on it too. */
  uploads: {
    variable: 'GATEWAY_UPSTREAM_CONNECTIONS',
    part: 1 / 2,
    share: 1 / 4,
    held: 'uploads in progress',
  },
  streams: { variable: 'GATEWAY_STREAMS', share: 1 / 16, held: 'open streams' },
  upgrades: { variable: 'GATEWAY_UPGRADES', share: 1 / 16, held: 'upgraded connections' },
  /** These wait too, for the reply before theirs instead of a connection. */
  pipelined: { variable: 'GATEWAY_WAITING', share: 1 / 2, held: 'pipelined requests' },
  /** Such a reply may hold its connection to the application. */
  unread_replies: { variable: 'GATEWAY_UPSTREAM_CONNECTIONS', share: 1 / 4, held: 'unread replies' },
} as const satisfies Readonly<Record<string, BoundRow>>;

export type BoundName = keyof typeof BOUNDS;

/** Order of the counts in `Client.held`. */
export const BOUND_NAMES = Object.keys(BOUNDS) as readonly BoundName[];

/** Makes an object with something for each bound. */
export function forEachBound<T>(make: (name: BoundName) => T): Readonly<Record<BoundName, T>> {
  return Object.fromEntries(BOUND_NAMES.map((name) => [name, make(name)])) as Record<BoundName, T>;
}
