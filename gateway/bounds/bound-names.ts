/** What is bounded, by the name that settings, metrics and the log use. */

export type BoundName =
  | 'connections'
  | 'upstream_connections'
  | 'waiting'
  | 'uploads'
  | 'streams'
  | 'upgrades'
  | 'pipelined'
  | 'unread_replies';

/** The order is that of `Client.held`. */
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

/** The variable of the total. */
export function boundVariable(name: BoundName): `GATEWAY_${Uppercase<BoundName>}` {
  return `GATEWAY_${name.toUpperCase() as Uppercase<BoundName>}`;
}
