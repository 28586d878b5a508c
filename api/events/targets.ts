/**
 * Decides where webhooks may point.
 *
 * A target is checked three times: when it is written, before each attempt, and by the connection, which resolves the
 * name through `addressesOf` and connects to one of exactly the addresses that were checked. So a name that resolves
 * differently the second time gains nothing. All addresses of a name must be public, not only one.
 *
 * Operators list the internal hosts that they want to reach, by name with any address, or by network. The list applies
 * only to webhooks of the operator's organization. All others reach only the public internet.
 */
import { promises as dns } from 'node:dns';
import { BlockList, isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type ApiError, badRequest } from '#api/errors.ts';
import type { Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';

/** Which targets webhooks may have: the public internet, or also the operator's list. */
export type Reach = 'public' | 'operators';

export interface AllowedTargets {
  /** Host names in lower case, without a trailing dot. */
  readonly hosts: readonly string[];
  readonly networks: readonly { readonly address: string; readonly prefix: number }[];
}

/**
 * Resolves a name to addresses.
 *
 * @param isOperators true: the operator named the host, so names that only this machine knows count
 * @throws Error if there are none
 */
export type Resolve = (hostname: string, isOperators: boolean) => Promise<readonly string[]>;

export interface Targets {
  /** Checks the whole URL, with the current addresses of its name. @throws ApiError bad_request, about the field `url` */
  check(url: string, reach: Reach): Promise<void>;
  /**
   * Finds the addresses that a connection to this host may use.
   *
   * @param hostname IPv6 with or without brackets @throws ApiError bad_request
   */
  addressesOf(hostname: string, reach: Reach): Promise<readonly string[]>;
}

const URL_LENGTH_MAX = 2_048;
const RESOLVE_TIMEOUT: Millis = 3_000;
/** Timeout of one query, shorter than that of a check. */
const QUERY_TIMEOUT: Millis = 2_500;
/** Azure gives each of its machines this address for its own services. */
const AZURE = '168.63.129.16';

const localHosts: ReadonlySet<string> = new Set([
  'localhost',
  'localhost.localdomain',
  'ip6-localhost',
  'ip6-loopback',
  'metadata.google.internal',
]);

export function createTargets(options: {
  readonly allowed: AllowedTargets;
  /** Whether all names and addresses are allowed for the operator's organization. */
  readonly allowsInternal: boolean;
  readonly resolve: Resolve;
  readonly resolveTimeoutMs?: Millis;
}): Targets {
  const { allowed, allowsInternal, resolve, resolveTimeoutMs = RESOLVE_TIMEOUT } = options;
  const hosts = new Set(allowed.hosts);
  const networks = new BlockList();
  for (const { address, prefix } of allowed.networks) networks.addSubnet(address, prefix, familyOf(address));

  const resolved = async (host: string, isOperators: boolean): Promise<readonly string[]> => {
    // A resolver that fails is treated like a name that does not exist.
    const answer = resolve(host, isOperators).catch(() => []);
    const addresses = await within(resolveTimeoutMs, answer).catch(() => {
      throw refused(`DNS resolution timed out for webhook URL hostname: ${host}`);
    });
    if (addresses.length === 0) throw refused(`Could not resolve webhook URL hostname: ${host}`);
    return addresses;
  };

  const addressesOf: Targets['addressesOf'] = async (hostname, reach) => {
    const host = plainHost(hostname);
    const isInside = reach === 'operators';
    const isOperators = isInside && (allowsInternal || hosts.has(host));
    if (!isOperators && isLocalName(host))
      throw refused('Webhook URL must not point to localhost or internal services');
    const addresses = isIP(host) === 0 ? await resolved(host, isOperators) : [host];
    const mayConnect = (address: string): boolean =>
      isOperators || isPublic(address) || (isInside && networks.check(address, familyOf(address)));
    if (addresses.every(mayConnect)) return addresses;
    throw refused('Webhook URL must not point to private or internal IP addresses');
  };

  return {
    addressesOf,
    async check(text, reach) {
      const url = text.length <= URL_LENGTH_MAX && URL.canParse(text) ? new URL(text) : null;
      if (url === null) throw refused('Invalid webhook URL format');
      if (url.protocol !== 'https:' && url.protocol !== 'http:')
        throw refused('Webhook URL must use HTTPS or HTTP protocol');
      // Without rules, the name may be unresolvable now.
      if (reach !== 'operators' || !allowsInternal) await addressesOf(url.hostname, reach);
    },
  };
}

function refused(reason: string): ApiError {
  return badRequest(reason, { url: reason });
}

/**
 * Resolves names of users by DNS (c-ares), which needs no thread. Otherwise a name server that never answers would occupy
 * the few threads that files and passwords need. Names of the operator are resolved like in all other programs, so that the
 * hosts file of the machine counts.
 *
 * @param servers addresses of name servers; null for those of this machine
 */
export function createResolve(servers: readonly string[] | null = null): Resolve {
  return async (hostname, isOperators) => {
    if (isOperators) return (await dns.lookup(hostname, { all: true })).map(({ address }) => address);
    const resolver = new dns.Resolver({ timeout: QUERY_TIMEOUT, tries: 1 });
    if (servers !== null) resolver.setServers(servers);
    const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  };
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

/**
 * Parses WEBHOOK_ALLOWED_TARGETS: host names, addresses and CIDRs, separated by commas.
 *
 * @throws Error with the wrong entry and the correct form
 */
export function parseAllowedTargets(text: string): AllowedTargets {
  const hosts: string[] = [];
  const networks: { readonly address: string; readonly prefix: number }[] = [];
  for (const entry of text.split(',').map((part) => part.trim().toLowerCase())) {
    if (entry === '') continue;
    const [, address = '', length] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
    const bits = isIP(address) === 4 ? 32 : 128;
    const prefix = length === undefined ? bits : Number(length);
    if (isIP(address) !== 0 && prefix <= bits) {
      networks.push({ address, prefix });
    } else if (/^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/.test(entry) && !/^[\d.]+$/.test(entry)) {
      hosts.push(entry);
    } else {
      throw new Error(
        `"${entry}" is neither a host name, an address, nor a CIDR; give some such as hooks.internal,10.1.0.0/16`,
      );
    }
  }
  return { hosts, networks };
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}

/** Turns `[::1]` into `::1`, and `Localhost.` into `localhost`. */
function plainHost(hostname: string): string {
  return hostname
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
    .toLowerCase();
}

/** Whether a name is that of this machine. Names below localhost are localhost (RFC 6761 6.3). */
function isLocalName(host: string): boolean {
  return localHosts.has(host) || host.endsWith('.localhost');
}
