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
import { isIP } from 'node:net';
import { type ApiError, badRequest } from '#api/errors.ts';
import type { Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { isPublic, matcher, type Network } from './addresses.ts';

/** Which targets webhooks may have: the public internet, or also the operator's list. */
export type Reach = 'public' | 'operators';

export interface AllowedTargets {
  /** Host names in lower case, without a trailing dot. */
  readonly hosts: readonly string[];
  readonly networks: readonly Network[];
}

/**
 * Resolves a name to addresses.
 *
 * @param isOperators true: the operator named the host, so names that only this machine knows count
 * @throws Error if there are none
 */
export type Resolve = (hostname: string, isOperators: boolean) => Promise<readonly string[]>;

type TargetCheck =
  | {
      readonly kind: 'allowed';
      readonly addresses: readonly string[];
      /** Whether some addresses are not public, the operator named the host, or it cannot be resolved. */
      readonly isPrivate: boolean;
    }
  /** Callers see `reason`. */
  | { readonly kind: 'refused'; readonly reason: string };

export interface Targets {
  /** Checks the whole URL, with the current addresses of its name. */
  check(url: string, reach: Reach): Promise<TargetCheck>;
  /** Finds the addresses that a connection to this host may use. @param hostname IPv6 with or without brackets */
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
  /** Whether all names and addresses are allowed for the operator's organization. */
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
      // Without rules, the name may be unresolvable now.
      return check.kind === 'refused' && allowsInternal && reach === 'operators' ? UNKNOWN : check;
    },
  };
}

/**
 * Checks a URL for routes that write the URL of a webhook.
 *
 * @throws ApiError bad_request, which names the field `url` in every error format
 */
export async function assertTarget(url: string, targets: Targets, reach: Reach): Promise<void> {
  const check = await targets.check(url, reach);
  if (check.kind === 'refused') throw targetRefused(check.reason);
}

function targetRefused(reason: string): ApiError {
  return badRequest(reason, { url: reason });
}

/**
 * Parses WEBHOOK_ALLOWED_TARGETS: host names, addresses and CIDRs, separated by commas.
 *
 * @throws Error with the wrong entry and the correct form
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

/** Finds no addresses if the resolver fails, which callers treat like a name that does not exist. */
async function resolveWithin(
  resolving: Promise<readonly string[]>,
  timeoutMs: Millis,
): Promise<readonly string[] | 'timeout'> {
  const answer = resolving.catch(() => []);
  return within(timeoutMs, answer).catch(() => 'timeout');
}
