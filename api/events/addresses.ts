/**
 * Tells which addresses belong to the public internet. The table lists those that do not: private, shared, loopback,
 * link-local with the metadata services, documentation, benchmarks, multicast and reserved (IANA special-purpose
 * registries). Pure.
 *
 * IPv6 addresses can contain an IPv4 address: mapped, compatible, NAT64 and 6to4. Each IPv4 network in the table is
 * also refused in these forms, because a translator would forward them.
 */
import { BlockList, isIP } from 'node:net';

const ipv4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Azure gives each of its machines this address for its own services.
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];

/** The rest of IPv6 is loopback, unspecified, link-local, unique local, multicast, or not assigned. */
const publicIpv6: readonly (readonly [string, number])[] = [
  ['2000::', 3],
  ['64:ff9b::', 96],
  ['::ffff:0:0', 96],
];

/** Parts of 2000::/3 that are not public: Teredo and other protocol assignments, documentation. */
const specialIpv6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['3fff::', 20],
];

const open = listOf(publicIpv6.map(([address, prefix]) => ({ address, prefix })));
const closed = listOf([
  ...ipv4.map(([address, prefix]) => ({ address, prefix })),
  ...specialIpv6.map(([address, prefix]) => ({ address, prefix })),
  ...ipv4.flatMap(([address, prefix]) => [
    { address: `::ffff:${address}`, prefix: 96 + prefix },
    { address: `64:ff9b::${address}`, prefix: 96 + prefix },
    { address: `2002:${hexOf(address)}::`, prefix: 16 + prefix },
  ]),
]);

export interface Network {
  readonly address: string;
  /** Number of leading bits that form the network. */
  readonly prefix: number;
}

/** @param address as resolvers and URL parsers write it, IPv6 without brackets */
export function isPublic(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !closed.check(address, 'ipv4');
    case 6:
      // A zone such as %eth0 names a local link.
      return !address.includes('%') && open.check(address, 'ipv6') && !closed.check(address, 'ipv6');
    default:
      return false;
  }
}

/** Makes a function that tells whether an address is in one of the networks. */
export function matcher(networks: readonly Network[]): (address: string) => boolean {
  const list = listOf(networks);
  return (address) => {
    const family = isIP(address);
    return family !== 0 && list.check(address, family === 4 ? 'ipv4' : 'ipv6');
  };
}

function listOf(networks: readonly Network[]): BlockList {
  const list = new BlockList();
  for (const { address, prefix } of networks) {
    list.addSubnet(address, prefix, isIP(address) === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

/** Writes an IPv4 address as a part of IPv6: 10.1.2.3 becomes 0a01:0203. */
function hexOf(address: string): string {
  const hex = address
    .split('.')
    .map((part) => Number(part).toString(16).padStart(2, '0'))
    .join('');
  return `${hex.slice(0, 4)}:${hex.slice(4)}`;
}
