/** Settings of the bounds: a total for each, and one share of a single client for all of them. */
import type { SettingsReader, Variable } from '#shared/configuration.ts';
import { BOUND_VARIABLE, type BoundName } from './bound-names.ts';
import type { BoundLimits, BoundSettings } from './bounds.ts';
import { DEFAULT_UPGRADES, parseUpgrades, type Upgrades } from './upgrades.ts';

export const BOUND_VARIABLES = [
  { name: 'GATEWAY_CONNECTIONS', default: '8192', meaning: 'maximum number of open client connections' },
  {
    name: 'GATEWAY_UPSTREAM_CONNECTIONS',
    default: '256',
    meaning: 'maximum number of requests in progress at the application; further ones wait',
  },
  {
    name: 'GATEWAY_WAITING',
    default: '4096',
    meaning:
      'maximum number of requests that wait for a connection to the application, or whose body is read before the decision; each 8 KiB in memory of a body count as one more',
  },
  {
    name: 'GATEWAY_STREAMS',
    default: '1024',
    meaning: 'maximum number of event streams, and of replies that take longer than 5 s',
  },
  {
    name: 'GATEWAY_UPGRADES',
    default: 'websocket',
    meaning:
      'protocols that a client may [switch to](operating.md#upgrades), separated by commas, such as `websocket, tcp, SPDY/3.1`; a number in the list is the maximum number of such connections, by default 1024',
  },
  {
    name: 'GATEWAY_CLIENT_SHARE',
    default: '',
    meaning:
      'share of each of these totals that one client address can hold, from 0.001 to 1, such as `0.25`; unset: the shares in [Bounds](operating.md#bounds)',
  },
] as const satisfies readonly Variable[];

/** Shares without GATEWAY_CLIENT_SHARE. A client may need most of a scarce resource, but little of a plentiful one. */
const SHARES: Readonly<Record<BoundName, number>> = {
  connections: 1 / 16,
  upstream_connections: 1 / 4,
  waiting: 1 / 16,
  uploads: 1 / 4,
  streams: 1 / 16,
  upgrades: 1 / 16,
  pipelined: 1 / 2,
  unread_replies: 1 / 4,
};
const TOTAL_MAX = 1_000_000;
const SHARE_MIN = 0.001;

type Read = SettingsReader<(typeof BOUND_VARIABLES)[number]['name']>;

export function readUpgrades(read: Read): Upgrades {
  return read.parse('GATEWAY_UPGRADES', DEFAULT_UPGRADES, parseUpgrades);
}

export function readBounds(read: Read, upgrades = readUpgrades(read)): BoundSettings {
  const share = read.parse('GATEWAY_CLIENT_SHARE', null, clientShare);
  const limitsOf = (name: BoundName, total: number): BoundLimits => ({
    total,
    perClient: Math.max(1, Math.floor(total * (share ?? SHARES[name]))),
  });
  const totalOf = (name: Exclude<BoundName, 'upgrades'>): number =>
    read.integer(BOUND_VARIABLE[name], 1, TOTAL_MAX);
  const inProgress = totalOf('upstream_connections');
  const waiting = totalOf('waiting');
  return {
    connections: limitsOf('connections', totalOf('connections')),
    upstream_connections: limitsOf('upstream_connections', inProgress),
    waiting: limitsOf('waiting', waiting),
    // An upload holds its connection for longer, and the application works on it too.
    uploads: limitsOf('uploads', Math.ceil(inProgress / 2)),
    streams: limitsOf('streams', totalOf('streams')),
    upgrades: limitsOf('upgrades', upgrades.total),
    // These wait too, for the reply before theirs instead of a connection.
    pipelined: limitsOf('pipelined', waiting),
    // Such a reply may hold its connection to the application.
    unread_replies: limitsOf('unread_replies', inProgress),
  };
}

function clientShare(value: string): number | null {
  if (value === '') return null;
  const share = Number(value);
  if (!(share >= SHARE_MIN && share <= 1))
    throw new Error(`it must be a number from ${SHARE_MIN} to 1, such as 0.25`);
  return share;
}
