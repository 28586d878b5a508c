/**
 * Two ends of a connection in memory. One is what the server of HTTP/1.1 takes for a client's socket, so that all of its
 * bounds and timeouts hold for a stream of HTTP/2; a client of HTTP/1.1 has the other.
 */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

/** What is asked of a socket besides being a stream. */
class End extends Duplex {
  readonly remoteAddress: string;
  readonly encrypted = true;
  bytesRead = 0;
  bytesWritten = 0;
  peer: End | null = null;
  /** The other end has no room for it yet. */
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
    // With room left nobody would ask for more.
    if (peer.push(chunk)) process.nextTick(() => this.takeWritten()?.());
  }

  override _final(done: () => void): void {
    this.peer?.push(null);
    done();
  }

  /** As a connection that is cut. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const { peer } = this;
    this.peer = null;
    this.takeWritten()?.();
    if (peer !== null) process.nextTick(() => peer.destroy());
    done(error);
  }

  // What node:http asks of sockets; there is no kernel below that could heed it.
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

/** @param remoteAddress whose connection the first end is */
export function connectedEnds(remoteAddress: string): { readonly server: Socket; readonly client: Socket } {
  const [server, client] = [new End(remoteAddress), new End(remoteAddress)];
  server.peer = client;
  client.peer = server;
  // node:http takes any duplex stream for a socket, but its types do not say so.
  return { server: server as unknown as Socket, client: client as unknown as Socket };
}
