/** The settings of the bounds on what clients hold at once. */
import type { SettingsReader, Variable } from '#shared/configuration.ts';
import { type BoundName, boundVariable } from './bound-names.ts';
import type { BoundLimits, BoundSettings } from './bounds.ts';

export const BOUND_VARIABLES = [
  { name: 'GATEWAY_CONNECTIONS', default: '8192', meaning: 'most open client connections' },
  { name: 'GATEWAY_CONNECTIONS_PER_CLIENT', default: '512', meaning: 'the same for one client address' },
  {
    name: 'GATEWAY_UPSTREAM_CONNECTIONS',
    default: '256',
    meaning: 'most requests in progress at the application; further ones wait',
  },
  {
    name: 'GATEWAY_UPSTREAM_CONNECTIONS_PER_CLIENT',
    default: '64',
    meaning: 'the same for one client address',
  },
  {
    name: 'GATEWAY_WAITING',
    default: '4096',
    meaning: 'most requests that wait for a connection to the application',
  },
  { name: 'GATEWAY_WAITING_PER_CLIENT', default: '256', meaning: 'the same for one client address' },
  {
    name: 'GATEWAY_UPLOADS',
    default: '128',
    meaning: 'most request bodies over 16 KiB that are being forwarded; further ones wait',
  },
  { name: 'GATEWAY_UPLOADS_PER_CLIENT', default: '32', meaning: 'the same for one client address' },
  { name: 'GATEWAY_STREAMS', default: '1024', meaning: 'most event streams and long replies' },
  { name: 'GATEWAY_STREAMS_PER_CLIENT', default: '64', meaning: 'the same for one client address' },
  { name: 'GATEWAY_UPGRADES', default: '1024', meaning: 'most WebSockets' },
  { name: 'GATEWAY_UPGRADES_PER_CLIENT', default: '64', meaning: 'the same for one client address' },
  {
    name: 'GATEWAY_PIPELINED',
    default: '4096',
    meaning: 'most pipelined requests that wait for the reply before theirs',
  },
  { name: 'GATEWAY_PIPELINED_PER_CLIENT', default: '2048', meaning: 'the same for one client address' },
  { name: 'GATEWAY_UNREAD_REPLIES', default: '256', meaning: 'most replies whose client reads nothing' },
  { name: 'GATEWAY_UNREAD_REPLIES_PER_CLIENT', default: '64', meaning: 'the same for one client address' },
  {
    name: 'GATEWAY_IPV6_NETWORK_PREFIX',
    default: '48',
    meaning:
      'prefix length of an IPv6 network whose clients together can hold at most a quarter of each of the totals above; `64`: networks have no such limit',
  },
] as const satisfies readonly Variable[];

const BOUND_MAX = 1_000_000;

type BoundVariable = (typeof BOUND_VARIABLES)[number]['name'];

export function readBounds<Name extends string>(read: SettingsReader<Name | BoundVariable>): BoundSettings {
  const limitsOf = (name: BoundName): BoundLimits => ({
    total: read.integer(boundVariable(name), 1, BOUND_MAX),
    perClient: read.integer(`${boundVariable(name)}_PER_CLIENT`, 1, BOUND_MAX),
  });
  return {
    connections: limitsOf('connections'),
    upstream_connections: limitsOf('upstream_connections'),
    waiting: limitsOf('waiting'),
    uploads: limitsOf('uploads'),
    streams: limitsOf('streams'),
    upgrades: limitsOf('upgrades'),
    pipelined: limitsOf('pipelined'),
    unread_replies: limitsOf('unread_replies'),
  };
}
