/**
 * Finds the client address of a request.
 *
 * It is the socket's peer, unless that is a trusted proxy. Then X-Forwarded-For is read from the right, because every
 * trusted hop appended what it saw; entries further left can be forged. If a trusted proxy sends an unreadable chain,
 * the result is UNTRUSTED: all such clients share one bucket, so forged chains never get a new limit.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The shared address of clients with an unreadable chain. */
export const UNTRUSTED = 'untrusted';

export type ProxyTrust =
  | { readonly kind: 'none' }
  | { readonly kind: 'hops'; readonly hops: number }
  | { readonly kind: 'cidrs'; readonly networks: TrustedNetworks };

/** Networks of trusted proxies. Those that stand in files may change while the program runs. */
export interface TrustedNetworks {
  readonly files: readonly TrustedFile[];
  readonly all: readonly Network[];
  /** Differs after each change. */
  readonly version: number;
  /** @param address 4 or 16 bytes */
  has(address: readonly number[]): boolean;
}

export interface TrustedFile {
  readonly name: string;
  /** The text that was read at the start. */
  readonly firstText: string;
  readonly networks: readonly Network[];
  /** Why the current text of the file is not in use; null if it is in use. */
  readonly problem: string | null;
  use(networks: readonly Network[]): void;
  refuse(problem: string): void;
}

type Trusting = Exclude<ProxyTrust, { readonly kind: 'none' }>;
type Address = ReturnType<typeof ipaddr.process>;
type Cidr = readonly [Address, number];

/** Limit of entries that are read. No real chain of trusted proxies is longer. */
const CHAIN_MAX = 64;

export interface Network {
  /** The bytes of the address: 4 for IPv4, 16 for IPv6. */
  readonly bytes: readonly number[];
  readonly bits: number;
}

/**
 * @param complaint message of the error if it is none
 * @throws Error
 */
export function parseNetwork(
  text: string,
  complaint = `"${text}" is neither an address nor a network`,
): Network {
  const [network, bits] = parseCidr(text, complaint);
  return { bytes: network.toByteArray(), bits };
}

export function writtenNetwork({ bytes, bits }: Network): string {
  return `${ipaddr.fromByteArray([...bytes])}/${bits}`;
}

function parseCidr(entry: string, complaint: string): Cidr {
  const [address = '', length, ...rest] = entry.split('/');
  const family = isIP(address);
  const bits = family === 4 ? 32 : 128;
  const prefix = length === undefined ? bits : /^\d{1,3}$/.test(length) ? Number(length) : Number.NaN;
  if (family === 0 || rest.length > 0 || !(prefix <= bits)) throw new Error(complaint);
  const parsed = ipaddr.process(address);
  if (family === 4 || parsed.kind() === 'ipv6') return [parsed, prefix];
  // ::ffff:10.0.0.0/104 is an IPv4 network in mapped notation. A shorter prefix would trust all IPv4 addresses.
  if (prefix < 96) throw new Error(`"${entry}" covers every IPv4 address; write it as ${parsed}/LENGTH`);
  return [parsed, prefix - 96];
}

/** The address of one client, parsed once and available in each form. */
export class ClientAddress {
  /** The parsed address; null if it cannot be read. */
  readonly #address: Address | null;

  /**
   * @param peer the socket's remote address; undefined if the socket is closed
   * @param forwardedFor all X-Forwarded-For values, joined with commas; '' if absent
   */
  constructor(peer: string | undefined, forwardedFor: string, trust: ProxyTrust) {
    this.#address = clientOf(peer, forwardedFor, trust);
  }

  get isReadable(): boolean {
    return this.#address !== null;
  }

  /** Whether the address belongs to one client. A trusted proxy, or an unreadable chain, may stand for many. */
  isOneClient(trust: ProxyTrust): boolean {
    return this.#address !== null && !(trust.kind === 'cidrs' && isTrusted(this.#address, trust));
  }

  /**
   * The address in the form in which it is counted.
   *
   * @param ipv6Prefix length of the prefix of one client: a household or a server usually has a /64
   * @param ipv4Prefix the same for IPv4
   * @returns dotted IPv4 (also for clients behind NAT64, 6to4 and Teredo), a network such as `2001:db8::/64` or
   * `192.0.2.0/24`, or UNTRUSTED
   */
  counted(ipv6Prefix = 64, ipv4Prefix = 32): string {
    return this.#address === null ? UNTRUSTED : counted(this.#address, ipv6Prefix, ipv4Prefix);
  }

  /** The bytes of the address: 16, or 4 for IPv4 (also behind NAT64, 6to4 and Teredo); null if it cannot be read. */
  get bytes(): readonly number[] | null {
    const bytes = this.#address?.toByteArray() ?? null;
    return bytes === null || bytes.length === 4 ? bytes : (embeddedIpv4(bytes) ?? bytes);
  }
}

/** Returns the client address in the form in which it is counted; see `ClientAddress`. */
export function clientAddress(
  peer: string | undefined,
  forwardedFor: string,
  trust: ProxyTrust,
  ipv6Prefix = 64,
  ipv4Prefix = 32,
): string {
  return new ClientAddress(peer, forwardedFor, trust).counted(ipv6Prefix, ipv4Prefix);
}

function clientOf(peer: string | undefined, forwardedFor: string, trust: ProxyTrust): Address | null {
  const socket = readAddress(peer ?? '');
  if (socket === null) return null;
  if (trust.kind === 'none') return socket;
  if (trust.kind === 'cidrs' && !isTrusted(socket, trust)) return socket;
  // Without a chain, count the proxy itself. With a hop count the chain is required.
  if (forwardedFor.trim() === '') return trust.kind === 'hops' ? null : socket;
  return walk(forwardedFor, trust);
}

/** Reads the chain from the right and stops at the first untrusted entry. */
function walk(chain: string, trust: Trusting): Address | null {
  let end = chain.length;
  for (let hop = 1; hop <= CHAIN_MAX; hop++) {
    const comma = chain.lastIndexOf(',', end - 1);
    const isLeftmost = comma < 0 || end === 0;
    const entry = chain.slice(isLeftmost ? 0 : comma + 1, end);
    if (trust.kind === 'hops') {
      // The peer is the nearest hop. Each further hop has written one entry.
      if (hop === trust.hops) return readAddress(entry);
      if (isLeftmost) return null;
    } else {
      const address = readAddress(entry);
      if (address === null || isLeftmost || !isTrusted(address, trust)) return address;
    }
    end = comma;
  }
  return null;
}

/** Whether the X-Forwarded-* fields of this peer are used. */
export function isTrustedPeer(peer: string | undefined, trust: ProxyTrust): boolean {
  if (trust.kind === 'none') return false;
  if (trust.kind === 'hops') return true;
  const address = readAddress(peer ?? '');
  return address !== null && isTrusted(address, trust);
}

/** Whether the text is an address, with or without a port. */
export function isAddress(text: string): boolean {
  return isIP(text) !== 0 || readAddress(text) !== null;
}

/** Parses `1.2.3.4`, `1.2.3.4:80`, `::1`, `[::1]:80`, `fe80::1%eth0` and IPv4-mapped IPv6; null for anything else. */
function readAddress(text: string): Address | null {
  let bare = text.trim();
  if (bare.startsWith('[')) {
    const end = bare.indexOf(']');
    if (end < 0 || !/^(:\d{1,5})?$/.test(bare.slice(end + 1))) return null;
    bare = bare.slice(1, end);
  } else if (/^[\d.]+:\d{1,5}$/.test(bare)) {
    bare = bare.slice(0, bare.indexOf(':'));
  }
  const zone = bare.indexOf('%');
  if (zone > 0) bare = bare.slice(0, zone);
  return isIP(bare) === 0 ? null : ipaddr.process(bare);
}

function isTrusted(address: Address, { networks }: Extract<ProxyTrust, { readonly kind: 'cidrs' }>): boolean {
  return networks.has(address.toByteArray());
}

/**
 * Returns the larger network that contains a client.
 *
 * @param client result of `clientAddress`
 * @returns null unless it is an IPv6 network
 */
export function networkOf(client: string, ipv6Prefix: number): string | null {
  const [address = ''] = client.split('/');
  const parsed = readAddress(address);
  return parsed === null || parsed.kind() === 'ipv4' ? null : counted(parsed, ipv6Prefix, 32);
}

/**
 * Returns the counted form of an address. It is separate from readAddress, because the owner of a 6to4 address chooses
 * it, and it must not match a trusted IPv4 proxy.
 */
function counted(address: Address, ipv6Prefix: number, ipv4Prefix: number): string {
  if (address.kind() === 'ipv4' && ipv4Prefix === 32) return address.toString();
  const bytes = address.toByteArray();
  const ipv4 = bytes.length === 4 ? bytes : embeddedIpv4(bytes);
  if (ipv4 !== null) return ipv4Prefix === 32 ? ipv4.join('.') : networkText(ipv4, ipv4Prefix);
  return networkText(bytes, beginsWith(LOCAL_NAT64_PREFIX, bytes) ? 128 : ipv6Prefix);
}

function networkText(bytes: readonly number[], prefix: number): string {
  const network = bytes.map((byte, i) => byte & mask(prefix - i * 8));
  return `${ipaddr.fromByteArray(network).toString()}/${prefix}`;
}

const NAT64_PREFIX = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];
/** Each address is one IPv4 client; the position of the IPv4 bytes depends on the translator (RFC 6052 2.2). */
const LOCAL_NAT64_PREFIX = [0, 0x64, 0xff, 0x9b, 0, 1];
const SIX_TO_FOUR_PREFIX = [0x20, 0x02];
const TEREDO_PREFIX = [0x20, 0x01, 0, 0];

/**
 * Returns the IPv4 address of a client behind a translator; otherwise one /64 could be all of IPv4. Covers NAT64
 * (64:ff9b::/96, RFC 6052, and /96 prefixes in 64:ff9b:1::/48, RFC 8215), 6to4 (2002::/16, RFC 3056) and Teredo
 * (2001::/32, RFC 4380).
 */
function embeddedIpv4(bytes: readonly number[]): readonly number[] | null {
  if (beginsWith(NAT64_PREFIX, bytes)) return bytes.slice(12);
  // With other prefix lengths the last bytes are zero, and the position of the IPv4 address is unknown.
  if (beginsWith(LOCAL_NAT64_PREFIX, bytes))
    return bytes.slice(13).some((byte) => byte !== 0) ? bytes.slice(12) : null;
  if (beginsWith(SIX_TO_FOUR_PREFIX, bytes)) return bytes.slice(2, 6);
  if (beginsWith(TEREDO_PREFIX, bytes)) return bytes.slice(12).map((byte) => byte ^ 0xff);
  return null;
}

function beginsWith(prefix: readonly number[], bytes: readonly number[]): boolean {
  return prefix.every((byte, i) => bytes[i] === byte);
}

/** Returns a byte whose first `bits` bits are set; clamped to 0 to 8. */
function mask(bits: number): number {
  return bits <= 0 ? 0 : bits >= 8 ? 0xff : (0xff << (8 - bits)) & 0xff;
}
