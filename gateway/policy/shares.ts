/**
 * The shares of a limit that all clients of a group have together: one client can use a twentieth of it, and all clients of one
 * IPv6 network a quarter. Otherwise one of them could keep out the others. Each share is a policy of its own, with the
 * mode and the conditions of the whole limit. `newPerDay` counts each client once, so it only has the share of a network.
 */
import type { AddressIdentifier, NetworkIdentifier } from '#gateway/identity/identifier.ts';

export interface Share {
  /** End of the names of its policies and counters. */
  readonly name: string;
  readonly identifier: AddressIdentifier | NetworkIdentifier;
  /** The share is the limit divided by this number. */
  readonly oneIn: number;
}

const IPV6_BYTES = 16;
/** A customer usually gets a /48 or less, and can use any address in it. */
const NETWORK_BYTES = 6;

/** IPv4 addresses are in no such network, because their owners have few of them. */
const IPV6_NETWORK: NetworkIdentifier = {
  name: 'IPv6 /48',
  kind: 'network',
  networks: {
    find: (address) =>
      address.length === IPV6_BYTES ? address.slice(0, NETWORK_BYTES).join('.') : undefined,
  },
};

export const NETWORK_SHARE = { name: 'network', identifier: IPV6_NETWORK, oneIn: 4 } satisfies Share;

export const SHARES: readonly Share[] = [
  { name: 'client', identifier: { name: 'address', kind: 'address', ipv6Prefix: 64 }, oneIn: 20 },
  NETWORK_SHARE,
];

export function sharedBy({ oneIn }: Pick<Share, 'oneIn'>, limit: number): number {
  return Math.max(1, Math.floor(limit / oneIn));
}
