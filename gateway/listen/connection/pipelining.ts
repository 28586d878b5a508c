/**
 * Bounds pipelined requests that wait in the queue, and their bytes: what was read behind a request stays in memory until
 * the request is answered. node:http parses all received bytes before it calls back: 64 KiB hold more than 1,000
 * requests, which takes 10 ms. So a client that exceeds its share loses the connection, and gets no new one for a
 * second. Otherwise it could send the next 64 KiB at once.
 */
import type { Socket } from 'node:net';
import type { Bound, Refusal } from '#gateway/bounds/bounds.ts';
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import { Penalties } from '#gateway/bounds/penalties.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { IncomingRequest } from '#gateway/http/incoming-request.ts';
import type { OutgoingResponse } from '#gateway/http/outgoing-response.ts';
import type { Millis } from '#shared/clock.ts';

/** Number of bytes that count as much as one request. */
const UNIT_BYTES = 4096;

/** Returns what bytes of pipelined requests count. */
export function unitsOf(bytes: number): number {
  return Math.ceil(bytes / UNIT_BYTES);
}

interface PipeliningOptions {
  readonly bound: Bound;
  readonly clients: Clients;
  readonly connections: ReadonlyMap<Socket, ClientConnection>;
  readonly penaltyMs?: Millis | undefined;
}

export class Pipelining {
  readonly bound: Bound;
  readonly #options: PipeliningOptions;
  readonly #penalties: Penalties;

  constructor(options: PipeliningOptions) {
    this.bound = options.bound;
    this.#options = options;
    this.#penalties = new Penalties(options.clients, options.penaltyMs);
  }

  /** @returns null if new connections of this client are accepted */
  refusalFor(client: Client | null): Refusal | null {
    return this.#penalties.has(client) ? 'client' : null;
  }

  /**
   * Handles pipelined requests of node:http one by one, so that a client connection uses at most one connection to the
   * upstream. Meanwhile the socket is paused. node:http still parses everything that has arrived: 64 KiB of the shortest
   * requests become 9 MB of objects.
   *
   * @param handle called when the replies before this one are sent
   */
  holdBack(
    connection: ClientConnection,
    req: IncomingRequest,
    res: OutgoingResponse,
    handle: () => void,
  ): void {
    const { socket } = connection;
    const { body } = req;
    let units = 1 + unitsOf(socket.readableLength);
    if (!this.take(connection, units)) return;
    if (body !== null) {
      body.onArrival = (bytes) => {
        const more = unitsOf(bytes);
        if (!socket.destroyed && this.take(connection, more)) units += more;
      };
    }
    socket.pause();
    res.once('socket', () => {
      if (body !== null) body.onArrival = null;
      // `forget` has already released the place of this request.
      if (socket.destroyed) return;
      this.give(connection, units);
      // If much of the body waits, whoever takes it resumes the socket.
      if (connection.pipelined === 0 && body?.isFull !== true) socket.resume();
      handle();
    });
  }

  /** Counts what waits. @returns false if the connection was cut instead */
  take(connection: ClientConnection, units: number): boolean {
    const refusal = this.bound.take(connection.client, units);
    if (refusal === null) {
      connection.pipelined += units;
      return true;
    }
    this.bound.refused(refusal);
    this.#cut(connection, refusal);
    return false;
  }

  give(connection: ClientConnection, units: number): void {
    connection.pipelined -= units;
    this.bound.give(connection.client, units);
  }

  /** Called when the connection is closed. */
  forget(connection: ClientConnection): void {
    this.bound.give(connection.client, connection.pipelined);
    connection.pipelined = 0;
  }

  #cut(connection: ClientConnection, refusal: Refusal): void {
    const { client } = connection;
    connection.socket.destroy();
    if (client === null || refusal !== 'client' || !this.#penalties.add(client)) return;
    // Connections accepted in this tick have not been read yet.
    for (const { socket, client: owner } of this.#options.connections.values())
      if (owner === client && socket.bytesRead === 0) socket.destroy();
  }
}
