/**
 * Determines where the requests of a connection come from, once for each connection. If the trusted proxies stand in a
 * file, an open connection gains or loses trust when the file changes.
 */
import { isTrustedPeer, type ProxyTrust } from '#shared/client-address.ts';

export interface PeerSocket {
  readonly remoteAddress?: string | undefined;
  /** Whether the connection uses TLS. */
  readonly encrypted?: boolean | undefined;
}

export class RequestOrigin {
  /** The address of the socket's peer, or the address in its PROXY header. */
  readonly peer: string;
  /** Whether the address comes from a PROXY header. */
  readonly isIntroduced: boolean;
  readonly scheme: 'http' | 'https';
  readonly #trust: ProxyTrust;
  #trusted = false;
  /** Version of the networks that `#trusted` was read from. */
  #version = -1;

  /** @param introducedAs the address in the PROXY header; null without one */
  constructor(
    { remoteAddress = '', encrypted = false }: PeerSocket,
    trust: ProxyTrust,
    introducedAs: string | null = null,
  ) {
    const address = introducedAs ?? remoteAddress;
    // A dual-stack listener writes 192.0.2.1 as ::ffff:192.0.2.1.
    this.peer = address.startsWith('::ffff:') ? address.slice(7) : address;
    this.isIntroduced = introducedAs !== null;
    this.scheme = encrypted ? 'https' : 'http';
    this.#trust = trust;
  }

  /** Whether the peer is a trusted proxy, whose X-Forwarded-* headers are trusted and forwarded. */
  get trusted(): boolean {
    const version = this.#trust.kind === 'cidrs' ? this.#trust.networks.version : 0;
    if (version !== this.#version) {
      this.#version = version;
      this.#trusted = isTrustedPeer(this.peer, this.#trust);
    }
    return this.#trusted;
  }
}
