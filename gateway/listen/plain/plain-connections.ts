/** All connections that have had only plain requests so far. One timer checks them all. */
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { Millis } from '#shared/clock.ts';
import { PlainConnection, type PlainConnectionOptions } from './plain-connection.ts';

type Options = Omit<PlainConnectionOptions, 'onGone'>;

export class PlainConnections {
  readonly #ofClients: PlainConnectionOptions;
  readonly #ofProxies: PlainConnectionOptions;
  readonly #open = new Set<PlainConnection>();
  readonly #timer: NodeJS.Timeout;

  /** @param ofProxies those for connections of a trusted proxy */
  constructor(ofClients: Options, checkMs: Millis, ofProxies: Options = ofClients) {
    const onGone = (connection: PlainConnection): void => void this.#open.delete(connection);
    this.#ofClients = { ...ofClients, onGone };
    this.#ofProxies = { ...ofProxies, onGone };
    this.#timer = setInterval(() => this.#check(), checkMs);
    this.#timer.unref();
  }

  open(connection: ClientConnection): void {
    const options = connection.origin.trusted ? this.#ofProxies : this.#ofClients;
    this.#open.add(new PlainConnection(connection, options));
  }

  closeIdle(): void {
    for (const connection of this.#open) connection.closeIdle();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    const now = this.#ofClients.clock();
    for (const connection of this.#open) connection.check(now);
  }
}
