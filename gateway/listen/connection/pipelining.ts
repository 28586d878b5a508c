/**
 * Bounds pipelined requests that wait in the queue, and their bytes: what was read behind a request stays in memory until
 * the request is answered. A client that exceeds its share loses the connection.
 */
import type { Bound } from '#gateway/bounds/bounds.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { IncomingRequest } from '#gateway/http/incoming-request.ts';
import type { OutgoingResponse } from '#gateway/http/outgoing-response.ts';
import type { Floods } from './floods.ts';

/** Number of bytes that count as much as one request. */
const UNIT_BYTES = 4096;

/** Returns what bytes of pipelined requests count. */
export function unitsOf(bytes: number): number {
  return Math.ceil(bytes / UNIT_BYTES);
}

export class Pipelining {
  readonly bound: Bound;
  readonly #floods: Floods;

  constructor(bound: Bound, floods: Floods) {
    this.bound = bound;
    this.#floods = floods;
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
    connection.socket.destroy();
    if (connection.client !== null && refusal === 'client') this.#floods.add(connection.client);
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
}
