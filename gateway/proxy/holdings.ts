/**
 * Resources of one call: the client entry, an upstream connection or a place in the queue for one, a stream, an
 * upgrade. `close` gives all of them back; only the connection stays until its exchange is over.
 */
import type { Refusal } from '#gateway/bounds/bounds.ts';
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import type { UpstreamConnection } from './exchange.ts';
import type { Upstream } from './upstream.ts';
import type { PoolCall, UpstreamPool } from './upstream-pool.ts';

export class Holdings {
  readonly client: Client;
  connection: UpstreamConnection | null = null;
  /** The pool in which the call waits or which gave its connection; null before `enter`. */
  pool: UpstreamPool | null = null;
  /** Whether the connection counts against the bound for streams instead of its pool's. */
  isStream = false;
  readonly #upstream: Upstream;
  readonly #clients: Clients;
  #holdsUpgrade = false;
  #isClosed = false;
  #isSettled = false;

  /** @param client entered by the caller; `close` leaves it */
  constructor(client: Client, upstream: Upstream, clients: Clients) {
    this.client = client;
    this.#upstream = upstream;
    this.#clients = clients;
  }

  takeUpgrade(): Refusal | null {
    const { upgrades } = this.#upstream.bounds;
    const refusal = upgrades.take(this.client);
    if (refusal === null) this.#holdsUpgrade = true;
    else upgrades.refused(refusal);
    return refusal;
  }

  /** Keeps the upgrade beyond the end of the call. @returns function that gives it back */
  handOverUpgrade(): () => void {
    this.#holdsUpgrade = false;
    const client = this.#clients.hold(this.client);
    return () => {
      this.#upstream.bounds.upgrades.give(client);
      this.#clients.leave(client);
    };
  }

  /** Makes the connection count as a stream. @returns the reason if there is no room; else null */
  becomeStream(): Refusal | null {
    const { streams } = this.#upstream.bounds;
    const refusal = streams.take(this.client);
    if (refusal !== null) {
      streams.refused(refusal);
      return refusal;
    }
    this.isStream = true;
    this.pool?.detach(this.client);
    return null;
  }

  giveConnection(): void {
    const { connection, pool } = this;
    if (connection === null || pool === null) return;
    this.connection = null;
    if (this.isStream) {
      this.#upstream.bounds.streams.give(this.client);
      pool.put(connection);
    } else pool.release(connection, this.client);
    this.#settle();
  }

  close(call: PoolCall): void {
    this.#isClosed = true;
    this.pool?.leave(call);
    this.#settle();
  }

  #settle(): void {
    if (!this.#isClosed || this.connection !== null || this.#isSettled) return;
    this.#isSettled = true;
    if (this.#holdsUpgrade) this.#upstream.bounds.upgrades.give(this.client);
    this.#clients.leave(this.client);
  }
}
