/**
 * Accepts connections on several sockets of one port. libuv accepts one connection from a listening socket in each
 * tick, so a client that opens many at once delays the others by as many ticks. The kernel spreads connections over the
 * sockets, and each tick accepts one from each of them.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { assertFree } from '#shared/assert-free.ts';
import type { Millis } from '#shared/clock.ts';

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Whether other processes may listen on the same port. */
  readonly reusePort: boolean;
}

/** Values of `host` that only programs on this machine can reach. */
export const LOOPBACK = /^(?:localhost|::1|127(?:\.\d{1,3}){3})$/;

/** An additional listener cannot listen. The cause gives the reason. */
export class ListenError extends Error {
  readonly portVariable: string;
  readonly hostVariable: string;

  constructor(portVariable: string, hostVariable: string, cause: unknown) {
    super(`the listener of ${portVariable} cannot listen`, { cause });
    this.name = 'ListenError';
    this.portVariable = portVariable;
    this.hostVariable = hostVariable;
  }
}

const PUBLIC_VARIABLES = { portVariable: 'GATEWAY_PORT', hostVariable: 'GATEWAY_HOST' };

/**
 * Says in a sentence why the gateway cannot listen, and what to do.
 *
 * @returns null if the error is not about listening
 */
export function listenErrorText(error: unknown): string | null {
  const isOther = error instanceof ListenError;
  const { code, port } = (isOther ? error.cause : error) as NodeJS.ErrnoException & { port?: number };
  const { portVariable, hostVariable } = isOther ? error : PUBLIC_VARIABLES;
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is taken; stop the program that has it, or set ${portVariable}`;
    case 'EACCES':
      return `port ${port} needs more rights; set ${portVariable} to 1024 or above`;
    case 'EADDRNOTAVAIL':
    case 'EAFNOSUPPORT':
    case 'EAI_AGAIN':
    case 'EINVAL':
    case 'ENOTFOUND':
      return `this machine does not have the address in ${hostVariable}`;
    default:
      return null;
  }
}

/** Eight sockets saved four fifths of the wait behind 128 connections at once. More saved nothing. */
const SOCKETS = 8;
const BACKLOG = 1024;
/** Maximum number of ticks in which a closing listener still accepts. */
const TURNS_MAX = 1024;

export class Listener {
  readonly #servers: Server[] = [];
  readonly #onConnection: (socket: Socket) => void;
  readonly #keepAliveMs: Millis;
  #accepted = 0;

  /** @param keepAliveMs how long a connection is silent before TCP probes its peer; 0 for never */
  constructor(onConnection: (socket: Socket) => void, keepAliveMs: Millis = 0) {
    this.#onConnection = onConnection;
    this.#keepAliveMs = keepAliveMs;
  }

  /**
   * @returns the port, which differs from the option if that is 0
   * @throws the system's error, with `code` and `port`
   */
  async listen({ host, port, reusePort }: ListenOptions): Promise<number> {
    if (port !== 0 && !reusePort) await assertFree(host, port);
    let first: number;
    try {
      first = await this.#listen(host, port, true);
    } catch (error) {
      // Sockets cannot share a port on this system.
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

  /** Accepts the connections that the kernel has already queued. */
  async emptyQueue(): Promise<void> {
    for (let turns = 0, before = -1; before < this.#accepted && turns < TURNS_MAX; turns++) {
      before = this.#accepted;
      // Wait for two ticks. The first call may only end the current tick, in which nothing is accepted.
      await nextTurn();
      await nextTurn();
    }
  }

  /** Stops accepting. Resolves when all accepted connections are closed. */
  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }

  #listen(host: string, port: number, reusePort: boolean): Promise<number> {
    const server = createServer(
      {
        // Use the same setting as http.createServer.
        allowHalfOpen: true,
        noDelay: true,
        // Only TCP keep-alive detects that the client of a tunnel has vanished.
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
        // Without file descriptors, accepting fails. That must not end the process.
        server.on('error', () => undefined);
        const address = server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : port);
      });
    });
  }
}
