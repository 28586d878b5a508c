/**
 * Determines where the requests of a connection come from, once for each connection. If the trusted proxies stand in a
 * file, an open connection gains or loses trust when the file changes.
 */
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
  const networks = trust.kind === 'cidrs' && trust.networks.files.length > 0 ? trust.networks : null;
  let version = networks?.version;
  let trusted = isTrustedPeer(address, trust);
  return {
    // A dual-stack listener writes 192.0.2.1 as ::ffff:192.0.2.1.
    peer: address.startsWith('::ffff:') ? address.slice(7) : address,
    get trusted() {
      if (version !== networks?.version) {
        version = networks?.version;
        trusted = isTrustedPeer(address, trust);
      }
      return trusted;
    },
    isIntroduced: introducedAs !== null,
    scheme: encrypted ? 'https' : 'http',
  };
}
