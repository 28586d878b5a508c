/**
 * Whom a request is counted for: its address and the credentials that it presents, as identities.
 *
 * Also which credential its answer can prove. Only a credential that was the only one of its request: an upstream may
 * have answered to another one, a session's cookie above all.
 */

import type { RequestOrigin } from '#gateway/http/request-headers.ts';
import {
  ambiguityOf,
  carriersOf,
  isOnlyCredential,
  type PresentedCredential,
  presentedCredential,
  presentedValues,
  VALUES_MAX,
} from '#gateway/identity/credential.ts';
import type { Digester, Identity } from '#gateway/identity/digest.ts';
import type {
  AddressIdentifier,
  CombinedIdentifier,
  CredentialSource,
  SimpleIdentifier,
  TokenIdentifier,
} from '#gateway/identity/identifier.ts';
import { AMBIGUOUS } from '#gateway/identity/pairs.ts';
import type { VerifiedTokens } from '#gateway/identity/verified-tokens.ts';
import type { Charge } from '#gateway/limiter/charge.ts';
import type { Cover } from '#gateway/policy/match.ts';
import { pathValue } from '#gateway/policy/path-value.ts';
import { clientAddress, isTrustedPeer, type ProxyTrust, UNTRUSTED } from '#shared/client-address.ts';

/** What a connection is known by. */
export interface PeerSocket {
  readonly remoteAddress?: string | undefined;
  /** True with TLS. */
  readonly encrypted?: boolean | undefined;
}

/** What is known of a connection; worked out at its first request. */
export interface Peer {
  readonly origin: RequestOrigin;
  /** Addresses counted on this connection, by prefix length; empty where each request names another client. */
  readonly addresses: Map<number, Identity>;
  /** What requests of this connection are charged to where only its address is counted; empty as above. */
  readonly charges: Map<Cover, ChargedTo>;
  readonly table: PeerBasis;
}

/** What a peer's identities follow from. */
export interface PeerBasis {
  readonly digester: Digester;
  readonly tokens: VerifiedTokens;
  /** Where the identifiers of the whole file look for credentials. */
  readonly carriers: readonly CredentialSource[];
}

/** What is charged, for whom. */
export interface ChargedTo {
  readonly charge: Charge;
  readonly identified: KnownAs;
  /** Some of its counters do not count every request. */
  readonly hasOutcomes: boolean;
  /** As a trusted proxy says, where overrides may go by it; null: none does. */
  readonly plan: string | null;
}

/** Whom a request is counted for, and what its answer proves. */
export interface KnownAs {
  readonly identities: readonly (Identity | null)[];
  readonly credentials: readonly Identity[];
  readonly provable: Identity | null;
  readonly pathValues: readonly Identity[];
}

/** Whom a request is counted for. */
export class Identified implements KnownAs {
  /** In the order of `Cover.identifiers`; null where no such credential is presented. */
  readonly identities: (Identity | null)[] = [];
  /** In the same order: whose proof holds for it, where it is another one's; null where none is. */
  proofs: (Identity | undefined)[] | null = null;
  readonly credentials: Identity[] = [];
  /** Values of path parameters that have to be proven: a success does, whatever else the request presents. */
  pathValues: readonly Identity[] = NO_IDENTITIES;
  /** The credential that was found last, as it is presented; null: none was. */
  presented: PresentedCredential | null = null;
  hasToken = false;

  /** The credential that an answer to this request proves; null: none. */
  get provable(): Identity | null {
    const [only, ...others] = this.credentials;
    if (only === undefined || others.length > 0 || this.hasToken) return null;
    return this.presented !== null && isOnlyCredential(this.presented) ? only : null;
  }

  /** Applications answer some requests without a look at who sends them. */
  proveNothing(): void {
    this.credentials.length = 0;
    this.pathValues = NO_IDENTITIES;
  }
}

const NO_IDENTITIES: readonly Identity[] = [];

/** Who answers for unproven credentials where no policy of the request counts addresses itself. */
const ANY_ADDRESS: AddressIdentifier = {
  name: 'address',
  kind: 'address',
  ipv6Prefix: 64,
};

/** Where a connection comes from. */
export function originOf(socket: PeerSocket, trust: ProxyTrust): RequestOrigin {
  const address = socket.remoteAddress ?? '';
  return {
    // What a dual-stack listener calls ::ffff:192.0.2.1 is 192.0.2.1 to everybody else.
    peer: address.startsWith('::ffff:') ? address.slice(7) : address,
    trusted: isTrustedPeer(address, trust),
    isIntroduced: false,
    scheme: socket.encrypted === true ? 'https' : 'http',
  };
}

/** The connections' peers. What is known of one ends with it, or with the table of policies. */
export class PeerTable {
  readonly #trust: ProxyTrust;
  readonly #onUntrustedChain: (peer: string) => void;
  readonly #peers = new WeakMap<PeerSocket, Peer>();
  /** Whose connections they are, where another than the socket's peer. */
  readonly #introduced = new WeakMap<PeerSocket, string>();

  /** @param onUntrustedChain a trusted proxy sent a chain that cannot be read */
  constructor(trust: ProxyTrust, onUntrustedChain: (peer: string) => void) {
    this.#trust = trust;
    this.#onUntrustedChain = onUntrustedChain;
  }

  /** Before a request comes on it. @param address to be taken for the socket's peer */
  introduce(socket: PeerSocket, address: string): void {
    this.#introduced.set(socket, address);
  }

  originOf(socket: PeerSocket): RequestOrigin {
    const remoteAddress = this.#introduced.get(socket);
    if (remoteAddress === undefined) return originOf(socket, this.#trust);
    return { ...originOf({ remoteAddress, encrypted: socket.encrypted }, this.#trust), isIntroduced: true };
  }

  of(socket: PeerSocket, table: PeerBasis): Peer {
    const known = this.#peers.get(socket);
    if (known !== undefined && known.table === table) return known;
    const peer: Peer = {
      origin: this.originOf(socket),
      addresses: new Map(),
      charges: new Map(),
      table,
    };
    this.#peers.set(socket, peer);
    return peer;
  }

  /**
   * The identity of the client's address.
   *
   * @param forwardedFor all values of X-Forwarded-For, joined; '' when there is none
   */
  address(peer: Peer, forwardedFor: string, identifier: AddressIdentifier = ANY_ADDRESS): Identity {
    const { origin, addresses, table } = peer;
    const { ipv6Prefix } = identifier;
    const known = addresses.get(ipv6Prefix);
    if (known !== undefined) return known;
    // Behind a trusted proxy one connection carries many clients, so nothing may be remembered for it.
    const address = clientAddress(origin.peer, forwardedFor, this.#trust, ipv6Prefix);
    if (address === UNTRUSTED) this.#onUntrustedChain(origin.peer);
    const identity = table.digester.identify(identifier, address);
    if (!origin.trusted) addresses.set(ipv6Prefix, identity);
    return identity;
  }
}

/** A request, as far as it says who makes it. */
export interface IdentifiedRequest {
  readonly method?: string | undefined;
  /** Names and values in turn. */
  readonly rawHeaders: readonly string[];
}

/**
 * @param target as matched: the canonical path and the query
 * @param forwardedFor all values of X-Forwarded-For, joined; '' when there is none
 * @returns why it is refused when it presents two different values where one is counted
 */
export function identify(
  cover: Cover,
  { rawHeaders, method }: IdentifiedRequest,
  target: string,
  forwardedFor: string,
  peer: Peer,
  peers: PeerTable,
): Identified | string {
  const found = new Identified();
  for (const identifier of cover.identifiers) {
    if (identifier.kind === 'combined') {
      const refusal = addCombined(found, identifier, rawHeaders, target, forwardedFor, peer, peers);
      if (refusal !== null) return refusal;
      continue;
    }
    const identity = identityOf(found, identifier, rawHeaders, target, forwardedFor, peer, peers);
    if (typeof identity === 'string') return identity;
    if (identifier.kind === 'path') addPathValue(found, identity);
    found.identities.push(identity);
  }
  if (method === 'OPTIONS') found.proveNothing();
  return found;
}

/** @returns why the request is refused; null: it is not */
function addCombined(
  found: Identified,
  { parts, proofAt }: CombinedIdentifier,
  ...presented: Presented
): string | null {
  const identities: Identity[] = [];
  for (const part of parts) {
    const identity = identityOf(found, part, ...presented);
    if (typeof identity === 'string') return identity;
    if (identity !== null) identities.push(identity);
  }
  const isWhole = identities.length === parts.length;
  if (isWhole) {
    const proof = identities[proofAt];
    if (parts[proofAt]?.kind === 'path') addPathValue(found, proof ?? null);
    found.proofs ??= [];
    found.proofs[found.identities.length] = proof;
  }
  const [, , , { table }] = presented;
  found.identities.push(isWhole ? table.digester.combine(identities) : null);
  return null;
}

function addPathValue(found: Identified, value: Identity | null): void {
  if (value !== null) found.pathValues = [...found.pathValues, value];
}

type Presented = [
  rawHeaders: readonly string[],
  target: string,
  forwardedFor: string,
  peer: Peer,
  peers: PeerTable,
];

/** @returns null where it is absent; why the request is refused */
export function identityOf(
  found: Identified,
  identifier: SimpleIdentifier,
  rawHeaders: readonly string[],
  target: string,
  forwardedFor: string,
  peer: Peer,
  peers: PeerTable,
): Identity | string | null {
  const { digester } = peer.table;
  switch (identifier.kind) {
    case 'address':
      return peers.address(peer, forwardedFor, identifier);
    case 'path': {
      const mark = target.indexOf('?');
      const path = mark < 0 ? target : target.slice(0, mark);
      const value = pathValue(path, identifier.at, identifier.takesRest, identifier.ignoresCase);
      if (value === null) return null;
      if (value === AMBIGUOUS) return 'the path can be read in two ways; send it without segment parameters';
      return digester.identify(identifier, value);
    }
    case 'credential': {
      const presented = presentedCredential(rawHeaders, identifier.sources, target);
      if (presented.kind === 'ambiguous') return ambiguityOf(identifier);
      if (presented.kind === 'none') return null;
      const identity = digester.identify(identifier, presented.value);
      if (!hasDigest(found.credentials, identity)) found.credentials.push(identity);
      found.presented = { ...presented, rawHeaders, target, carriers: peer.table.carriers };
      return identity;
    }
    case 'token':
      return tokenIdentity(found, identifier, rawHeaders, peer.table);
    default:
      return identifier satisfies never;
  }
}

/**
 * Everybody whom a request may be by an identifier for which it presents different values: the application may take any.
 *
 * @returns why the request is refused
 */
export function allIdentitiesOf(
  identifier: SimpleIdentifier,
  rawHeaders: readonly string[],
  target: string,
  { digester, tokens }: PeerBasis,
): Identity[] | string {
  const identities: Identity[] = [];
  const sources = identifier.kind === 'token' ? identifier.sources : [null];
  for (const source of sources) {
    const carriers = source === null ? carriersOf(identifier) : [source.carrier];
    const values = presentedValues(rawHeaders, carriers, target);
    if (values.size > VALUES_MAX)
      return `the request presents more than ${VALUES_MAX} different values of ${identifier.name}; send one`;
    for (const value of values) {
      const identity =
        identifier.kind === 'token' && source !== null
          ? tokens.identify(identifier, source, value)
          : digester.identify(identifier, value);
      if (identity !== null) identities.push(identity);
    }
  }
  return identities;
}

/** A token that is not valid is none: whoever made it up is nobody. */
function tokenIdentity(
  found: Identified,
  identifier: TokenIdentifier,
  rawHeaders: readonly string[],
  { tokens }: PeerBasis,
): Identity | string | null {
  let identity: Identity | null = null;
  for (const source of identifier.sources) {
    const presented = presentedCredential(rawHeaders, [source.carrier]);
    if (presented.kind === 'ambiguous') return ambiguityOf(identifier);
    if (presented.kind === 'none') continue;
    found.hasToken = true;
    const claimed = tokens.identify(identifier, source, presented.value);
    if (identity !== null && claimed !== null && claimed.digest !== identity.digest)
      return ambiguityOf(identifier);
    identity ??= claimed;
  }
  return identity;
}

function hasDigest(identities: readonly Identity[], { digest }: Identity): boolean {
  for (const identity of identities) if (identity.digest === digest) return true;
  return false;
}
