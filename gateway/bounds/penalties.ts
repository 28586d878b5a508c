/** Clients whose new connections are refused for a short time, because they misused another connection. */
import type { Millis } from '#shared/clock.ts';
import type { Client, Clients } from './clients.ts';

const PENALTY_MS: Millis = 1000;

export class Penalties {
  readonly #clients: Clients;
  readonly #ms: Millis;
  readonly #penalized = new Set<Client>();

  constructor(clients: Clients, ms: Millis = PENALTY_MS) {
    this.#clients = clients;
    this.#ms = ms;
  }

  has(client: Client | null): boolean {
    return client !== null && this.#penalized.has(client);
  }

  /** Starts the penalty. @returns false if it is already running */
  add(client: Client): boolean {
    if (this.#penalized.has(client)) return false;
    const penalized = this.#clients.hold(client);
    this.#penalized.add(penalized);
    setTimeout(() => {
      this.#penalized.delete(penalized);
      this.#clients.leave(penalized);
    }, this.#ms).unref();
    return true;
  }
}
