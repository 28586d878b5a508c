/** Settings of the bounds: a total for each, and one share of a single client for all of them. */
import type { SettingsReader, Variable } from '#shared/configuration.ts';
import { type BoundName, boundVariable } from './bound-names.ts';
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
    name: 'GATEWAY_UPLOADS',
    default: '128',
    meaning: 'maximum number of request bodies over 16 KiB that are being forwarded; further ones wait',
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
    name: 'GATEWAY_PIPELINED',
    default: '4096',
    meaning:
      'maximum number of pipelined requests that wait for the reply before theirs; each 4 KiB that were read of them count as one more',
  },
  {
    name: 'GATEWAY_UNREAD_REPLIES',
    default: '256',
    meaning: 'maximum number of replies whose client reads nothing',
  },
  {
    name: 'GATEWAY_CLIENT_SHARE',
    default: '',
    meaning:
      'share of each of these totals that one client address can hold, from 0.001 to 1, such as `0.25`; unset: the shares in [Bounds](operating.md#bounds)',
  },
  {
    name: 'GATEWAY_IPV6_NETWORK_PREFIX',
    default: '48',
    meaning:
      'prefix length of an IPv6 network whose clients together can hold at most a quarter of each of these totals; `64`: networks have no such limit',
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
  const limitsOf = (
    name: BoundName,
    total = read.integer(boundVariable(name), 1, TOTAL_MAX),
  ): BoundLimits => ({ total, perClient: Math.max(1, Math.floor(total * (share ?? SHARES[name]))) });
  return {
    connections: limitsOf('connections'),
    upstream_connections: limitsOf('upstream_connections'),
    waiting: limitsOf('waiting'),
    uploads: limitsOf('uploads'),
    streams: limitsOf('streams'),
    upgrades: limitsOf('upgrades', upgrades.total),
    pipelined: limitsOf('pipelined'),
    unread_replies: limitsOf('unread_replies'),
  };
}

export function readNetworkPrefix(read: Read): number {
  return read.integer('GATEWAY_IPV6_NETWORK_PREFIX', 16, 64);
}

function clientShare(value: string): number | null {
  if (value === '') return null;
  const share = Number(value);
  if (!(share >= SHARE_MIN && share <= 1))
    throw new Error(`it must be a number from ${SHARE_MIN} to 1, such as 0.25`);
  return share;
}
