/** Tells which addresses belong to the public internet, and to networks that the operator lists. Pure. */
import { BlockList, isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Azure gives each of its machines this address for its own services. */
const AZURE = '168.63.129.16';

export interface Network {
  readonly address: string;
  /** Number of leading bits that form the network. */
  readonly prefix: number;
}

/**
 * Whether an address is none of those with a special purpose (IANA's registries): private, shared, loopback, link-local
 * with the metadata services, documentation, multicast or reserved. IPv6 addresses that contain an IPv4 address, mapped or
 * for NAT64, are what that one is, because a translator would forward them.
 *
 * @param text as resolvers and URL parsers write it, IPv6 without brackets
 */
export function isPublic(text: string): boolean {
  // A zone such as %eth0 names a local link.
  if (isIP(text) === 0 || text.includes('%')) return false;
  const address = ipaddr.process(text);
  const bytes = address.toByteArray();
  if (address.range() === 'rfc6052') return isPublic(bytes.slice(12).join('.'));
  // The public uses only 2000::/3 of IPv6.
  const isAssigned = address.kind() === 'ipv4' || ((bytes[0] ?? 0) & 0xe0) === 0x20;
  return isAssigned && address.range() === 'unicast' && address.toString() !== AZURE;
}

/** Makes a function that tells whether an address is in one of the networks. */
export function matcher(networks: readonly Network[]): (address: string) => boolean {
  const list = new BlockList();
  for (const { address, prefix } of networks) {
    list.addSubnet(address, prefix, isIP(address) === 4 ? 'ipv4' : 'ipv6');
  }
  return (address) => {
    const family = isIP(address);
    return family !== 0 && list.check(address, family === 4 ? 'ipv4' : 'ipv6');
  };
}
