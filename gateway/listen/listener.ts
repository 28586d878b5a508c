/**
 * Accepts connections. libuv takes one from a listening socket in each turn of the event loop, so a client that opens
 * many at once keeps everybody's new connections waiting for as many turns. Hence several sockets on one port: the
 * kernel spreads connections over them, and each turn takes one from each.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { assertFree } from '#shared/assert-free.ts';
import type { Millis } from '#shared/clock.ts';

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Other processes may listen on the same port as well. */
  readonly reusePort: boolean;
}

/** Eight were worth four in five of the wait behind 128 connections at once; more were worth nothing. */
const SOCKETS = 8;
const BACKLOG = 1024;
/** After so many turns in a row with new connections, accepting ends all the same. */
const TURNS_MAX = 1024;

export class Listener {
  readonly #servers: Server[] = [];
  readonly #onConnection: (socket: Socket) => void;
  readonly #keepAliveMs: Millis;
  #accepted = 0;

  /** @param keepAliveMs how long a connection is silent before its peer is probed */
  constructor(onConnection: (socket: Socket) => void, keepAliveMs: Millis = 0) {
    this.#onConnection = onConnection;
    this.#keepAliveMs = keepAliveMs;
  }

  /**
   * @returns the port, for those who asked for any
   * @throws what keeps it from listening, with `code` and `port`
   */
  async listen({ host, port, reusePort }: ListenOptions): Promise<number> {
    if (port !== 0 && !reusePort) await assertFree(host, port);
    let first: number;
    try {
      first = await this.#listen(host, port, true);
    } catch (error) {
      // A system on which sockets cannot share a port.
      if (reusePort || (error as NodeJS.ErrnoException).code !== 'ENOTSUP') throw error;
      return this.#listen(host, port, false);
    }
    try {
      while (this.#servers.length < SOCKETS) await this.#listen(host, first, true);
    } catch (error) {
      await this.close();
      throw error;
    }
    return first;
  }

  /** Accepts what the kernel has queued already. */
  async emptyQueue(): Promise<void> {
    for (let turns = 0, before = -1; before < this.#accepted && turns < TURNS_MAX; turns++) {
      before = this.#accepted;
      // The first one may end the turn in which we were called, before anything was accepted.
      await nextTurn();
      await nextTurn();
    }
  }

  /** Accepts no more. Resolves when all that were accepted are closed. */
  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }

  #listen(host: string, port: number, reusePort: boolean): Promise<number> {
    const server = createServer(
      {
        // What http.createServer asks for.
        allowHalfOpen: true,
        noDelay: true,
        // A tunnel whose client has vanished says so by this alone.
        keepAlive: this.#keepAliveMs > 0,
        keepAliveInitialDelay: this.#keepAliveMs,
      },
      (socket) => {
        this.#accepted++;
        this.#onConnection(socket);
      },
    );
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port, reusePort, backlog: BACKLOG }, () => {
        this.#servers.push(server);
        server.off('error', reject);
        // Accepting can fail for want of file descriptors. That costs a connection, not the process.
        server.on('error', () => undefined);
        const address = server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : port);
      });
    });
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
