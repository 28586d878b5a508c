/**
 * Finds the identity that an operator names by an address, a network, a digest or a key. A key can be any text. So a
 * mistyped address would be taken for a key that nobody has, and the operator would believe that the client is banned. A
 * text that looks like an address, a network or a host is a key only if the operator says so.
 */
import { isIP } from 'node:net';
import type { XStatic } from 'typebox/schema';
import { Digester, type Identity, identityOf } from '#gateway/identity/digest.ts';
import type { AddressIdentifier, SimpleIdentifier } from '#gateway/identity/identifier.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { bytesOf } from '#gateway/policy/target.ts';
import {
  ClientAddress,
  clientAddress,
  type Network,
  parseNetwork,
  writtenNetwork,
} from '#shared/client-address.ts';
import { AdminError, input } from './input.ts';

export type SubjectKind = 'address' | 'network' | 'key' | 'digest';

const DIGEST = /^[\w-]{21}[AQgw]$/;
/** Digits and dots, or two colons and hexadecimal digits, also with a port, a length or a wildcard. */
const LIKE_ADDRESS = /^\[?(?=.*[.:*])(?:[\d.*]+|(?=.*:.*:)[\da-f:.%*]+)\]?(?::\d+)?(?:\/.*|-[\da-f.:]+)?$/i;
/** Labels with a name at the end, also with a scheme, a port or a path. */
const LIKE_HOST =
  /^(?:[a-z][a-z0-9+.-]*:\/\/.*|localhost|(?:\*\.)?(?:[a-z0-9-]{1,63}\.)+(?:[a-z]{2,24}|xn--[a-z0-9-]+)\.?)(?::\d+)?(?:\/.*)?$/i;
/** The last character was cut off or changed: `192.0.2.x`. */
const LIKE_IPV4 = /^(?:\d{1,3}[.,]){2,3}[^.,]{0,3}(?:\/\d*)?$/;

export const subjectProperties = {
  subject: { type: 'string', minLength: 1, maxLength: 8192 },
  kind: { enum: ['address', 'network', 'key', 'digest'] },
  identifier: { type: 'string', maxLength: 200 },
} as const;

export const subjectSchema = input(subjectProperties, ['subject']);

export type Subject = XStatic<typeof subjectSchema>;

/** A shorter prefix would ban whole continents. */
const IPV4_BITS_MIN = 8;
const IPV6_BITS_MIN = 16;
const IPV6_BITS_MAX = 64;
/** Addresses that no client can have. */
const NOBODYS = new Set(['0.0.0.0', '::/64', '255.255.255.255']);

/** Who is named, and by what. */
export interface Named {
  readonly kind: SubjectKind;
  /** The address, the network or the digest. Of a key, its digest. */
  readonly name: string;
  /** The identity that is counted. */
  readonly identity: Identity;
  /** The identity that a ban is stored for. It differs for a network that no policy counts as one client. */
  readonly bannedAs: Identity;
  /**
   * The history belongs to this client. Groups know an address by itself, also if others count its
   * network.
   */
  readonly visitor: Visitor;
}

/** A client as groups know it. */
export interface Visitor {
  readonly client: Identity;
  /** The bytes of its address; null if they are unknown. */
  readonly address: readonly number[] | null;
}

export function isDigest(text: string): boolean {
  return DIGEST.test(text);
}

/** @throws AdminError 400 if the text looks like an address, a network or a host and is none */
export function kindOf(text: string): SubjectKind {
  if (isIP(text) !== 0) return 'address';
  if (isDigest(text)) return 'digest';
  if (isWrittenNetwork(text)) return 'network';
  if (LIKE_ADDRESS.test(text) || LIKE_IPV4.test(text))
    throw new AdminError(
      400,
      `"${text.slice(0, 60)}" looks like an address or a network and is neither; write one such as 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32, or use --key if it is a key`,
    );
  if (LIKE_HOST.test(text))
    throw new AdminError(400, 'a host is no client; name its address, or use --key if the text is a key');
  return 'key';
}

function isWrittenNetwork(text: string): boolean {
  if (!text.includes('/')) return false;
  try {
    parseNetwork(text);
    return true;
  } catch {
    return false;
  }
}

/** @throws AdminError 400 */
export function namedBy(written: Subject, set: PolicySet, salt: string): Named {
  const { subject, kind, identifier } = written;
  const text = subject.trim();
  const is = kind ?? kindOf(text);
  switch (is) {
    case 'network':
      return networkNamed(text, set, salt);
    case 'address':
      return text.includes('/') ? networkNamed(text, set, salt) : addressNamed(text, set, salt, identifier);
    case 'digest':
      if (!isDigest(text))
        throw new AdminError(400, 'a digest has 22 characters, as the log and "floodgate explain" show it');
      return namedByIdentity(is, identityOf(text));
    case 'key':
      return namedByIdentity(is, keyIdentity(text, chosen(set, 'credential', identifier), salt));
    default:
      return is satisfies never;
  }
}

/** Names a client of which only its digest is known. */
export function namedByIdentity(kind: SubjectKind, identity: Identity): Named {
  const visitor = { client: identity, address: null };
  return { kind, name: identity.digest, identity, bannedAs: identity, visitor };
}

function addressNamed(text: string, set: PolicySet, salt: string, identifier: string | undefined): Named {
  const identity = addressIdentity(text, chosen(set, 'address', identifier), salt);
  const address = new ClientAddress(text, '', { kind: 'none' });
  const client = new Digester(salt).identify(ADDRESS, address.counted());
  return {
    kind: 'address',
    name: text,
    identity,
    bannedAs: identity,
    visitor: { client, address: address.bytes },
  };
}

function networkNamed(text: string, set: PolicySet, salt: string): Named {
  const network = networkIn(text);
  const isIpv4 = network.bytes.length === 4;
  const least = isIpv4 ? IPV4_BITS_MIN : IPV6_BITS_MIN;
  if (network.bits < least)
    throw new AdminError(
      400,
      `${text} has too many clients for one ban; name networks of at least /${least}`,
    );
  if (!isIpv4 && network.bits > IPV6_BITS_MAX)
    throw new AdminError(
      400,
      `an IPv6 client is its /64; name an address, or a network of at most /${IPV6_BITS_MAX}`,
    );
  const [address = ''] = writtenNetwork(network).split('/');
  const form = { ...ADDRESS, ...(isIpv4 ? { ipv4Prefix: network.bits } : { ipv6Prefix: network.bits }) };
  const counted = clientAddress(address, '', { kind: 'none' }, form.ipv6Prefix, form.ipv4Prefix);
  const name = counted.includes('/') ? counted : `${counted}/32`;
  const identity = new Digester(salt).identify(ADDRESS, counted);
  const forms = [ADDRESS, ...set.identifiers.filter((one) => one.kind === 'address')];
  const isClient = forms.some((one) =>
    isIpv4 ? (one.ipv4Prefix ?? 32) === network.bits : one.ipv6Prefix === network.bits,
  );
  const visitor = { client: identity, address: null };
  return { kind: 'network', name, identity, bannedAs: isClient ? identity : identityOf(name), visitor };
}

function networkIn(text: string): Network {
  try {
    return parseNetwork(text);
  } catch (error) {
    throw new AdminError(400, `${(error as Error).message}; write one such as 192.0.2.0/24 or 2001:db8::/32`);
  }
}

function keyIdentity(text: string, identifiers: readonly SimpleIdentifier[], salt: string): Identity {
  if (text === '')
    throw new AdminError(400, 'a blank key identifies no client; give the key as clients send it');
  const [only, ...others] = identifiers;
  if (only === undefined)
    throw new AdminError(
      400,
      `"${shortened(text)}" is not an address, and the policy file has no identifier for keys`,
    );
  if (others.length > 0)
    throw new AdminError(
      400,
      `the policy file has several identifiers for keys; choose one with --identifier: ${identifiers.map(({ name }) => name).join(', ')}`,
    );
  return new Digester(salt).identify(only, bytesOf(text));
}

const ADDRESS: AddressIdentifier = { name: 'address', kind: 'address', ipv6Prefix: 64 };

function addressIdentity(text: string, identifiers: readonly SimpleIdentifier[], salt: string): Identity {
  if (isIP(text) === 0)
    throw new AdminError(400, `"${shortened(text)}" is not an address; write one such as 192.0.2.1`);
  const forms = identifiers.length === 0 ? [ADDRESS] : identifiers;
  const addresses = new Set(
    forms.map((one) => {
      const { ipv6Prefix, ipv4Prefix } = one.kind === 'address' ? one : ADDRESS;
      return clientAddress(text, '', { kind: 'none' }, ipv6Prefix, ipv4Prefix);
    }),
  );
  const [address = '', ...others] = addresses;
  if (others.length > 0)
    throw new AdminError(
      400,
      `the policy file counts addresses in several ways; choose one with --identifier: ${identifiers.map(({ name }) => name).join(', ')}`,
    );
  if (NOBODYS.has(address) || /^(?:22[4-9]|23\d)\./.test(address))
    throw new AdminError(400, `${text} is the address of no client; give a client's own`);
  return new Digester(salt).identify(ADDRESS, address);
}

function chosen(
  set: PolicySet,
  kind: SimpleIdentifier['kind'],
  name: string | undefined,
): SimpleIdentifier[] {
  const candidates = set.identifiers.filter((identifier) => identifier.kind === kind);
  if (name === undefined) return candidates;
  const found = candidates.filter((identifier) => identifier.name === name);
  if (found.length > 0) return found;
  const names = candidates.map((candidate) => candidate.name).join(', ') || 'none';
  throw new AdminError(400, `the policy file has no such identifier "${shortened(name)}"; it has: ${names}`);
}

/** Shortens a text, so that messages stay short and never contain a whole key. */
function shortened(text: string): string {
  return text.length <= 6 ? text : `${text.slice(0, 6)}…`;
}
