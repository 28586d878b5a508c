/**
 * Pipelined requests that wait for the replies before theirs, as their client's share allows. node:http parses all that
 * has arrived before it asks us: of 64 KiB 1,000 requests and more, a hundredth of a second. So for a client that goes
 * beyond its share the cut of that connection is not the end: until a second later no new ones are accepted from it, or
 * it would have the next 64 KiB parsed at once.
 */
import type { Socket } from 'node:net';
import type { Bound, Refusal } from '#gateway/bounds/bounds.ts';
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import { Penalties } from '#gateway/bounds/penalties.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { Millis } from '#shared/clock.ts';

interface PipeliningOptions {
  readonly bound: Bound;
  readonly clients: Clients;
  readonly connections: ReadonlyMap<Socket, ClientConnection>;
  readonly penaltyMs?: Millis | undefined;
}

export class Pipelining {
  readonly bound: Bound;
  readonly #options: PipeliningOptions;
  /** Who went beyond its share within the last second. */
  readonly #penalties: Penalties;

  constructor(options: PipeliningOptions) {
    this.bound = options.bound;
    this.#options = options;
    this.#penalties = new Penalties(options.clients, options.penaltyMs);
  }

  /** @returns why no new connection of this client is accepted at the moment; null: it is */
  refusalFor(client: Client | null): Refusal | null {
    return this.#penalties.has(client) ? 'client' : null;
  }

  /** One more has to wait. @returns false: the connection has been cut instead */
  take(connection: ClientConnection): boolean {
    const refusal = this.bound.take(connection.client);
    if (refusal === null) {
      connection.pipelined++;
      return true;
    }
    this.bound.refused(refusal);
    this.#cut(connection, refusal);
    return false;
  }

  give(connection: ClientConnection): void {
    connection.pipelined--;
    this.bound.give(connection.client);
  }

  /** The connection is closed. */
  forget(connection: ClientConnection): void {
    this.bound.give(connection.client, connection.pipelined);
    connection.pipelined = 0;
  }

  #cut(connection: ClientConnection, refusal: Refusal): void {
    const { client } = connection;
    connection.socket.destroy();
    if (client === null || refusal !== 'client' || !this.#penalties.add(client)) return;
    // Those that were accepted in this very turn have not been read yet.
    for (const { socket, client: owner } of this.#options.connections.values())
      if (owner === client && socket.bytesRead === 0) socket.destroy();
  }
}
