/** Reads the PROXY headers of connections. Only trusted proxies may send them. */
import type { Socket } from 'node:net';
import { readFirstBytes } from '#gateway/listen/connection/first-bytes.ts';
import { counter, type Sample } from '#gateway/part/sample.ts';
import { isTrustedPeer, type ProxyTrust } from '#shared/client-address.ts';
import type { Millis } from '#shared/clock.ts';
import { readProxyHeader } from './header.ts';

/** Timeout for the whole header. Proxies send it in their first packet. */
const HEADER_MS: Millis = 5000;

export class Introductions {
  readonly #trust: ProxyTrust;
  readonly #timeoutMs: Millis;
  readonly failures = { untrusted: 0, malformed: 0, timeout: 0 };

  constructor(trust: ProxyTrust, timeoutMs: Millis = HEADER_MS) {
    this.#trust = trust;
    this.#timeoutMs = timeoutMs;
  }

  /** Whether this peer may send a PROXY header. If not, the caller closes the connection. */
  accepts(socket: Socket): boolean {
    if (isTrustedPeer(socket.remoteAddress, this.#trust)) return true;
    this.failures.untrusted++;
    return false;
  }

  /**
   * Without a header in time the socket is closed.
   *
   * @param onIntroduced gets the client's address; null if the header has none, so the peer is the client
   */
  begin(socket: Socket, onIntroduced: (address: string | null) => void): void {
    let address: string | null = null;
    const look = (bytes: Buffer): number | 'more' | 'bad' => {
      const header = readProxyHeader(bytes);
      if (typeof header === 'string') return header;
      address = header.address;
      return header.bytes;
    };
    readFirstBytes(socket, this.#timeoutMs, look, (found) => {
      if (found === 'good') {
        onIntroduced(address);
        return;
      }
      if (found === 'late') this.failures.timeout++;
      else if (found === 'bad') this.failures.malformed++;
      socket.destroy();
    });
  }

  samples(): Sample[] {
    return Object.entries(this.failures).map(([reason, count]) =>
      counter('floodgate_proxy_headers_refused_total', 'Connections without a trusted PROXY header.', count, {
        reason,
      }),
    );
  }
}
