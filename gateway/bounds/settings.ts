/** Settings of the bounds: a total for each, and one share of a single client for all of them. */
import type { SettingsReader, Variable } from '#shared/configuration.ts';
import { BOUNDS, type BoundRow, forEachBound } from './bound-names.ts';
import type { BoundSettings } from './bounds.ts';

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
      'maximum number of requests that wait for a connection to the application, or whose body is read before the decision',
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
      'protocols that a client may [switch to](operating.md#upgrades), such as `websocket, tcp`; a number in the list is the maximum number of such connections, by default 1024',
  },
  {
    name: 'GATEWAY_CLIENT_SHARE',
    meaning:
      'share of each of these totals that one client address can hold, from 0.001 to 1, such as `0.25`; unset: the shares in [Bounds](operating.md#bounds)',
  },
] as const satisfies readonly Variable[];

/** Which protocols a connection may switch to, and the maximum number of connections that have switched. */
const DEFAULT_UPGRADES = { protocols: ['websocket'], total: 1024 };

const TOTAL_MAX = 1_000_000;
const SHARE_MIN = 0.001;

type Read = SettingsReader<(typeof BOUND_VARIABLES)[number]['name']>;

/** @returns the bounds, and the protocols in lower case that a client may switch its connection to */
export function readBounds(read: Read): {
  readonly bounds: BoundSettings;
  readonly upgrades: readonly string[];
} {
  const clientShare = read.parse('GATEWAY_CLIENT_SHARE', null, parseClientShare);
  const upgrades = read.parse('GATEWAY_UPGRADES', DEFAULT_UPGRADES, parseUpgrades);
  const totals = {
    GATEWAY_CONNECTIONS: read.integer('GATEWAY_CONNECTIONS', 1, TOTAL_MAX),
    GATEWAY_UPSTREAM_CONNECTIONS: read.integer('GATEWAY_UPSTREAM_CONNECTIONS', 1, TOTAL_MAX),
    GATEWAY_WAITING: read.integer('GATEWAY_WAITING', 1, TOTAL_MAX),
    GATEWAY_STREAMS: read.integer('GATEWAY_STREAMS', 1, TOTAL_MAX),
    GATEWAY_UPGRADES: upgrades.total,
  };
  const bounds = forEachBound((name) => {
    const { variable, part = 1, share }: BoundRow = BOUNDS[name];
    const total = Math.ceil(totals[variable] * part);
    return { total, perClient: Math.max(1, Math.floor(total * (clientShare ?? share))) };
  });
  return { bounds, upgrades: upgrades.protocols };
}

function parseClientShare(value: string): number | null {
  if (value === '') return null;
  const share = Number(value);
  if (!(share >= SHARE_MIN && share <= 1))
    throw new Error(`it must be a number from ${SHARE_MIN} to 1, such as 0.25`);
  return share;
}

/** A name, and possibly a version (RFC 9110 7.8). */
const PROTOCOL = /^[0-9a-z][!#$%&'*+.^_`|~0-9a-z-]*(?:\/[!#$%&'*+.^_`|~0-9a-z-]+)?$/i;
/** Over these, clients send further requests, which the gateway would neither see nor count. */
const CARRIES_REQUESTS = /^(?:h[23][^/]*|http|tls)(?:\/|$)/i;

/** @throws Error that says what is wrong */
function parseUpgrades(text: string): typeof DEFAULT_UPGRADES {
  const items = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  const names = items.filter((item) => !/^\d+$/.test(item));
  const totals = items.filter((item) => !names.includes(item)).map(Number);
  for (const name of names) {
    if (!PROTOCOL.test(name))
      throw new Error(
        `"${name}" is not a protocol, such as websocket or SPDY/3.1; separate several by commas`,
      );
    if (CARRIES_REQUESTS.test(name))
      throw new Error(`"${name}" would carry requests past the limits; leave it out`);
  }
  const [total = DEFAULT_UPGRADES.total, ...others] = totals;
  if (others.length > 0 || total < 1 || total > TOTAL_MAX)
    throw new Error(
      `the maximum of such connections must be one whole number from 1 to ${TOTAL_MAX}, or absent`,
    );
  // Case does not matter in names of protocols (RFC 9110 16.7).
  const protocols = names.map((name) => name.toLowerCase());
  return { protocols: protocols.length === 0 ? DEFAULT_UPGRADES.protocols : protocols, total };
}
