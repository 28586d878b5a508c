/**
 * Where webhooks may point.
 *
 * A target is checked three times: when it is written, before each attempt, and by the connection itself, which looks
 * the name up through `addressesOf` and connects to one of exactly the addresses that were checked. A name that answers
 * differently the second time gains nothing by it. All addresses of an answer must be public, not just one.
 *
 * Self-hosters list what they want to reach inside: host names, which then may have any address, or networks. The list
 * is for webhooks of the operator's organization alone: whoever else signs up reaches the public internet and no more.
 */
import { isIP } from 'node:net';
import { type ApiError, badRequest } from '#api/errors.ts';
import type { Millis } from '#shared/clock.ts';
import { isPublic, matcher, type Network } from './addresses.ts';

/** How far webhooks may go: to the public internet, or also where the operator's own may. */
export type Reach = 'public' | 'operators';

export interface AllowedTargets {
  /** In lower case, without a dot at the end. */
  readonly hosts: readonly string[];
  readonly networks: readonly Network[];
}

/**
 * Finds the addresses of a name.
 *
 * @param isOperators the operator named this host: also names that only this machine knows are looked up
 * @throws an Error when there are none
 */
export type Resolve = (hostname: string, isOperators: boolean) => Promise<readonly string[]>;

type TargetCheck =
  | {
      readonly kind: 'allowed';
      readonly addresses: readonly string[];
      /** Not all addresses are of the public internet, or the operator named the host, or nobody knows them. */
      readonly isPrivate: boolean;
    }
  /** `reason` is fit for the caller. */
  | { readonly kind: 'refused'; readonly reason: string };

export interface Targets {
  /** Judges the whole URL, with the addresses that its name has now. */
  check(url: string, reach: Reach): Promise<TargetCheck>;
  /** What a connection to this host may be made to. @param hostname IPv6 with or without brackets */
  addressesOf(hostname: string, reach: Reach): Promise<TargetCheck>;
}

const URL_LENGTH_MAX = 2_048;
const RESOLVE_TIMEOUT: Millis = 3_000;

const INVALID = 'Invalid webhook URL format';
const SCHEME = 'Webhook URL must use HTTPS or HTTP protocol';
const LOCAL = 'Webhook URL must not point to localhost or internal services';
const PRIVATE = 'Webhook URL must not point to private or internal IP addresses';

const UNKNOWN: TargetCheck = { kind: 'allowed', addresses: [], isPrivate: true };

const localHosts: ReadonlySet<string> = new Set([
  'localhost',
  'localhost.localdomain',
  'ip6-localhost',
  'ip6-loopback',
  'metadata.google.internal',
]);

export function createTargets(options: {
  readonly allowed: AllowedTargets;
  /** Switches the rules about names and addresses off, for the operator's organization. */
  readonly allowsInternal: boolean;
  readonly resolve: Resolve;
  readonly resolveTimeoutMs?: Millis;
}): Targets {
  const { allowed, allowsInternal, resolve, resolveTimeoutMs = RESOLVE_TIMEOUT } = options;
  const hosts = new Set(allowed.hosts);
  const isAllowedAddress = matcher(allowed.networks);

  const addressesOf = async (hostname: string, reach: Reach): Promise<TargetCheck> => {
    const host = plainHost(hostname);
    const isInside = reach === 'operators';
    const isNamed = isInside && hosts.has(host);
    const isOperators = isNamed || (isInside && allowsInternal);
    const allow = (found: readonly string[]): TargetCheck => ({
      kind: 'allowed',
      addresses: found,
      isPrivate: isNamed || !found.every(isPublic),
    });
    const mayConnect = (address: string): boolean =>
      isOperators || isPublic(address) || (isInside && isAllowedAddress(address));
    if (isIP(host) !== 0) {
      return mayConnect(host) ? allow([host]) : { kind: 'refused', reason: PRIVATE };
    }
    if (!isOperators && isLocalName(host)) return { kind: 'refused', reason: LOCAL };
    const addresses = await resolveWithin(resolve(host, isOperators), resolveTimeoutMs);
    if (addresses === 'timeout') {
      return { kind: 'refused', reason: `DNS resolution timed out for webhook URL hostname: ${host}` };
    }
    if (addresses.length === 0) {
      return { kind: 'refused', reason: `Could not resolve webhook URL hostname: ${host}` };
    }
    return addresses.every(mayConnect) ? allow(addresses) : { kind: 'refused', reason: PRIVATE };
  };

  return {
    addressesOf,
    async check(text, reach) {
      const url = text.length <= URL_LENGTH_MAX && URL.canParse(text) ? new URL(text) : null;
      if (url === null || (isHttp(url) && url.hostname === '')) return { kind: 'refused', reason: INVALID };
      if (!isHttp(url)) return { kind: 'refused', reason: SCHEME };
      const check = await addressesOf(url.hostname, reach);
      // Switched off means that a target may also be unknown to the resolver of this moment.
      return check.kind === 'refused' && allowsInternal && reach === 'operators' ? UNKNOWN : check;
    },
  };
}

/**
 * For the routes that write a webhook's URL.
 *
 * @throws ApiError bad_request, which names the field `url` in every error shape
 */
export async function assertTarget(url: string, targets: Targets, reach: Reach): Promise<void> {
  const check = await targets.check(url, reach);
  if (check.kind === 'refused') throw targetRefused(check.reason);
}

function targetRefused(reason: string): ApiError {
  return badRequest(reason, { url: reason });
}

/**
 * Reads WEBHOOK_ALLOWED_TARGETS: host names, addresses and CIDRs, separated by commas.
 *
 * @throws Error that says which entry is wrong and what would be right
 */
export function parseAllowedTargets(text: string): AllowedTargets {
  const hosts: string[] = [];
  const networks: Network[] = [];
  for (const entry of text.split(',').map((part) => part.trim().toLowerCase())) {
    if (entry === '') continue;
    const [address = '', length, ...rest] = entry.split('/');
    const family = isIP(address);
    const bits = family === 4 ? 32 : 128;
    const prefix = length === undefined ? bits : /^\d{1,3}$/.test(length) ? Number(length) : Number.NaN;
    if (family !== 0 && rest.length === 0 && prefix <= bits) {
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

function isHttp({ protocol }: URL): boolean {
  return protocol === 'https:' || protocol === 'http:';
}

/** `[::1]` -> `::1`, `Localhost.` -> `localhost` */
function plainHost(hostname: string): string {
  return hostname
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
    .toLowerCase();
}

/** RFC 6761 6.3: every name below localhost is localhost. */
function isLocalName(host: string): boolean {
  return localHosts.has(host) || host.endsWith('.localhost');
}

/** No addresses when the resolver fails, which to a caller is the same as a name that does not exist. */
async function resolveWithin(
  resolving: Promise<readonly string[]>,
  timeoutMs: Millis,
): Promise<readonly string[] | 'timeout'> {
  const { promise, resolve } = Promise.withResolvers<'timeout'>();
  const timer = setTimeout(resolve, timeoutMs, 'timeout');
  const answer = resolving.then(
    (addresses) => addresses,
    () => [],
  );
  try {
    return await Promise.race([answer, promise]);
  } finally {
    clearTimeout(timer);
  }
}
