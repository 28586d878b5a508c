/** Determines where the requests of a connection come from, once for each connection. */
import { isTrustedPeer, type ProxyTrust } from '#shared/client-address.ts';

export interface RequestOrigin {
  /** The address of the socket's peer, or the address in its PROXY header. */
  readonly peer: string;
  /** Whether the peer is a trusted proxy, whose X-Forwarded-* headers are trusted and forwarded. */
  readonly trusted: boolean;
  /** Whether the address comes from a PROXY header. */
  readonly isIntroduced: boolean;
  readonly scheme: 'http' | 'https';
}

export interface PeerSocket {
  readonly remoteAddress?: string | undefined;
  /** Whether the connection uses TLS. */
  readonly encrypted?: boolean | undefined;
}

/** @param introducedAs the address in the PROXY header; null without one */
export function originOf(
  { remoteAddress = '', encrypted = false }: PeerSocket,
  trust: ProxyTrust,
  introducedAs: string | null = null,
): RequestOrigin {
  const address = introducedAs ?? remoteAddress;
  return {
    // A dual-stack listener writes 192.0.2.1 as ::ffff:192.0.2.1.
    peer: address.startsWith('::ffff:') ? address.slice(7) : address,
    trusted: isTrustedPeer(address, trust),
    isIntroduced: introducedAs !== null,
    scheme: encrypted ? 'https' : 'http',
  };
}

/** Remembers the origins of connections that another server accepted. */
export class Origins {
  readonly #trust: ProxyTrust;
  readonly #known = new WeakMap<PeerSocket, RequestOrigin>();

  constructor(trust: ProxyTrust) {
    this.#trust = trust;
  }

  of(socket: PeerSocket): RequestOrigin {
    let origin = this.#known.get(socket);
    if (origin === undefined) {
      origin = originOf(socket, this.#trust);
      this.#known.set(socket, origin);
    }
    return origin;
  }
}
