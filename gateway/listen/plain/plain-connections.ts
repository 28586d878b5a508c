/** All connections that have had only plain requests so far. One timer checks them all. */
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import { PlainConnection, type PlainConnectionOptions } from './plain-connection.ts';

export class PlainConnections {
  readonly #options: PlainConnectionOptions;
  readonly #open = new Set<PlainConnection>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: Omit<PlainConnectionOptions, 'onGone'>, checkMs: number) {
    this.#options = { ...options, onGone: (connection) => void this.#open.delete(connection) };
    this.#timer = setInterval(() => this.#check(), checkMs);
    this.#timer.unref();
  }

  open(connection: ClientConnection): void {
    this.#open.add(new PlainConnection(connection, this.#options));
  }

  closeIdle(): void {
    for (const connection of this.#open) connection.closeIdle();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    const now = this.#options.clock();
    for (const connection of this.#open) connection.check(now);
  }
}
