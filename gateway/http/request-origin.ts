/**
 * Determines where the requests of a connection come from, once for each connection. If the trusted proxies stand in a
 * file, an open connection gains or loses trust when the file changes.
 */
import { isTrustedPeer, type ProxyTrust, type TrustedNetworks } from '#shared/client-address.ts';

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
  const origin: RequestOrigin = {
    // A dual-stack listener writes 192.0.2.1 as ::ffff:192.0.2.1.
    peer: address.startsWith('::ffff:') ? address.slice(7) : address,
    trusted: isTrustedPeer(address, trust),
    isIntroduced: introducedAs !== null,
    scheme: encrypted ? 'https' : 'http',
  };
  return trust.kind === 'cidrs' && trust.networks.files.length > 0
    ? new ChangingOrigin(origin, trust)
    : origin;
}

class ChangingOrigin implements RequestOrigin {
  readonly peer: string;
  readonly isIntroduced: boolean;
  readonly scheme: 'http' | 'https';
  readonly #trust: ProxyTrust & { readonly networks: TrustedNetworks };
  #trusted: boolean;
  /** Version of the networks that `#trusted` was read from. */
  #version: number;

  constructor(
    { peer, trusted, isIntroduced, scheme }: RequestOrigin,
    trust: ProxyTrust & { readonly networks: TrustedNetworks },
  ) {
    this.peer = peer;
    this.isIntroduced = isIntroduced;
    this.scheme = scheme;
    this.#trust = trust;
    this.#trusted = trusted;
    this.#version = trust.networks.version;
  }

  get trusted(): boolean {
    const { version } = this.#trust.networks;
    if (version !== this.#version) {
      this.#version = version;
      this.#trusted = isTrustedPeer(this.peer, this.#trust);
    }
    return this.#trusted;
  }
}
