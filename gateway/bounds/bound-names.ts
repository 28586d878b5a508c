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

/** Returns the variable that sets the total. */
export function boundVariable(name: BoundName): `GATEWAY_${Uppercase<BoundName>}` {
  return `GATEWAY_${name.toUpperCase() as Uppercase<BoundName>}`;
}
