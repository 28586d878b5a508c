/**
 * Whom a request is counted for: its address and the credentials that it presents, as identities.
 *
 * Also which credential its answer can prove. Only a credential that was the only one of its request: an upstream may
 * have answered to another one, a session's cookie above all.
 */
import { clientAddress, isTrustedPeer, type ProxyTrust, UNTRUSTED } from '#shared/client-address.ts';
import { isOnlyCredential, presentedCredential } from './identity/credential.ts';
import type { Digester, Identity } from './identity/digest.ts';
import type { Charge } from './limiter/charge.ts';
import type { Cover } from './policy/match.ts';
import type { Identifier } from './policy/policy.ts';
import type { RequestOrigin } from './proxy/request-headers.ts';

/** What a connection is known by. */
export interface PeerSocket {
  readonly remoteAddress?: string | undefined;
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
}

/** What is charged, for whom. */
export interface ChargedTo {
  readonly charge: Charge;
  readonly identified: Identified;
  /** Some of its counters do not count every request. */
  readonly hasOutcomes: boolean;
}

export interface Identified {
  /** In the order of `Cover.identifiers`; null where no such credential is presented. */
  readonly identities: readonly (Identity | null)[];
  readonly credentials: readonly Identity[];
  /** The credential that an answer to this request proves; null: none. */
  readonly provable: Identity | null;
}

export const NOBODY: Identified = { identities: [], credentials: [], provable: null };

/** Who answers for credentials that have not worked yet where no policy of the request counts addresses itself. */
const ANY_ADDRESS: Identifier & { readonly kind: 'address' } = {
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
  };
}

/** The connections' peers. What is known of one ends with it, or with the table of policies. */
export class PeerTable {
  readonly #trust: ProxyTrust;
  readonly #onUntrustedChain: (peer: string) => void;
  readonly #peers = new WeakMap<PeerSocket, Peer>();

  /** @param onUntrustedChain a trusted proxy sent a chain that cannot be read */
  constructor(trust: ProxyTrust, onUntrustedChain: (peer: string) => void) {
    this.#trust = trust;
    this.#onUntrustedChain = onUntrustedChain;
  }

  of(socket: PeerSocket, table: PeerBasis): Peer {
    const known = this.#peers.get(socket);
    if (known !== undefined && known.table === table) return known;
    const peer: Peer = {
      origin: originOf(socket, this.#trust),
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
  address(peer: Peer, forwardedFor: string, identifier: Identifier = ANY_ADDRESS): Identity {
    const { origin, addresses, table } = peer;
    const ipv6Prefix = identifier.kind === 'address' ? identifier.ipv6Prefix : ANY_ADDRESS.ipv6Prefix;
    const known = addresses.get(ipv6Prefix);
    if (known !== undefined) return known;
    // Behind a trusted proxy one connection carries many clients, so nothing may be remembered for it.
    const address = clientAddress(origin.peer, forwardedFor, this.#trust, ipv6Prefix);
    if (address === UNTRUSTED) this.#onUntrustedChain(origin.peer);
    const identity = table.digester.identify(
      identifier.kind === 'address' ? identifier : ANY_ADDRESS,
      address,
    );
    if (!origin.trusted) addresses.set(ipv6Prefix, identity);
    return identity;
  }
}

/** @returns null when the request presents two different credentials where one is counted */
export function identify(
  cover: Cover,
  rawHeaders: readonly string[],
  forwardedFor: string,
  peer: Peer,
  peers: PeerTable,
): Identified | null {
  const identities: (Identity | null)[] = [];
  const credentials: Identity[] = [];
  let isAlone = true;
  for (const identifier of cover.identifiers) {
    if (identifier.kind === 'address') {
      identities.push(peers.address(peer, forwardedFor, identifier));
      continue;
    }
    const presented = presentedCredential(rawHeaders, identifier.sources);
    if (presented.kind === 'ambiguous') return null;
    if (presented.kind === 'none') {
      identities.push(null);
      continue;
    }
    const identity = peer.table.digester.identify(identifier, presented.value);
    identities.push(identity);
    credentials.push(identity);
    isAlone &&= isOnlyCredential(rawHeaders, presented.value);
  }
  return {
    identities,
    credentials,
    provable: isAlone && credentials.length === 1 ? (credentials[0] ?? null) : null,
  };
}
