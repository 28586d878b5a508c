/**
 * An in-memory connection between an HTTP/1.1 client and the HTTP/1.1 server. The server treats its end as a socket, so
 * all its bounds and timeouts apply to streams of HTTP/2.
 */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

/** A stream with the members of a socket that node:http and the gateway use. */
class End extends Duplex {
  readonly remoteAddress: string;
  readonly encrypted = true;
  bytesRead = 0;
  bytesWritten = 0;
  peer: End | null = null;
  /** Callback of a write that waits until the other end has room. */
  #written: (() => void) | null = null;

  constructor(remoteAddress: string) {
    super({ allowHalfOpen: true });
    this.remoteAddress = remoteAddress;
  }

  override _read(): void {
    const written = this.peer?.takeWritten() ?? null;
    written?.();
  }

  takeWritten(): (() => void) | null {
    const written = this.#written;
    this.#written = null;
    return written;
  }

  override _write(chunk: Buffer, _encoding: string, written: () => void): void {
    const { peer } = this;
    this.bytesWritten += chunk.length;
    if (peer === null || peer.destroyed) {
      written();
      return;
    }
    peer.bytesRead += chunk.length;
    this.#written = written;
    // If the other end has room left, _read is not called, so continue here.
    if (peer.push(chunk)) process.nextTick(() => this.takeWritten()?.());
  }

  override _final(done: () => void): void {
    this.peer?.push(null);
    done();
  }

  /** Cuts the connection: the other end closes too. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const { peer } = this;
    this.peer = null;
    this.takeWritten()?.();
    if (peer !== null) process.nextTick(() => peer.destroy());
    done(error);
  }

  // node:http calls these. Without a kernel socket they have no effect.
  setTimeout(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/** @param remoteAddress address of the client */
export function connectedEnds(remoteAddress: string): { readonly server: Socket; readonly client: Socket } {
  const [server, client] = [new End(remoteAddress), new End(remoteAddress)];
  server.peer = client;
  client.peer = server;
  // node:http accepts any duplex stream as a socket, but its types do not say so.
  return { server: server as unknown as Socket, client: client as unknown as Socket };
}
