/**
 * Clients whose new connections are closed for a moment, because they flooded another one. node:http parses all received
 * bytes before it calls back: 64 KiB hold more than 1,000 requests, or 10,000 pieces of a body, which takes 10 ms. The
 * client could send the next 64 KiB at once on another connection.
 */
import type { Socket } from 'node:net';
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { Millis } from '#shared/clock.ts';

const PENALTY_MS: Millis = 1000;

export class Penalties {
  readonly #clients: Clients;
  readonly #connections: ReadonlyMap<Socket, ClientConnection>;
  readonly #ms: Millis;
  readonly #penalized = new Set<Client>();

  constructor(clients: Clients, connections: ReadonlyMap<Socket, ClientConnection>, ms = PENALTY_MS) {
    this.#clients = clients;
    this.#connections = connections;
    this.#ms = ms;
  }

  has(client: Client | null): boolean {
    return client !== null && this.#penalized.has(client);
  }

  /** Starts the penalty, and closes the connections of the client that may be part of the flood. */
  add(client: Client): void {
    if (this.#penalized.has(client)) return;
    const penalized = this.#clients.hold(client);
    this.#penalized.add(penalized);
    setTimeout(() => {
      this.#penalized.delete(penalized);
      this.#clients.leave(penalized);
    }, this.#ms).unref();
    for (const { socket, client: owner, pending } of this.#connections.values()) {
      if (owner !== client || socket.writableEnded) continue;
      const isBodyDue = pending !== null && !pending.req.complete;
      // Connections accepted in this tick have not been read yet.
      if (socket.bytesRead === 0 || (isBodyDue && pending.req.body?.pieces?.isSmall !== false))
        socket.destroy();
    }
  }
}
