export type BoundName =
  | 'connections'
  | 'upstream_connections'
  | 'waiting'
  | 'uploads'
  | 'streams'
  | 'upgrades'
  | 'pipelined'
  | 'unread_replies';

/** Order of the counts in `Client.held`. */
export const BOUND_NAMES: readonly BoundName[] = [
  'connections',
  'upstream_connections',
  'waiting',
  'uploads',
  'streams',
  'upgrades',
  'pipelined',
  'unread_replies',
];

/** The variable that sets the total. Some bounds have none of their own, and follow the one that they belong to. */
export const BOUND_VARIABLE = {
  connections: 'GATEWAY_CONNECTIONS',
  upstream_connections: 'GATEWAY_UPSTREAM_CONNECTIONS',
  waiting: 'GATEWAY_WAITING',
  uploads: 'GATEWAY_UPSTREAM_CONNECTIONS',
  streams: 'GATEWAY_STREAMS',
  upgrades: 'GATEWAY_UPGRADES',
  pipelined: 'GATEWAY_WAITING',
  unread_replies: 'GATEWAY_UPSTREAM_CONNECTIONS',
} as const satisfies Record<BoundName, string>;
