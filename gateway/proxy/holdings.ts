/**
 * Resources of one call: the client entry, an upstream connection or a place in the queue for one, a stream, an
 * upgrade. `close` gives all of them back; only the connection stays until its exchange is over.
 */
import type { Refusal } from '#gateway/bounds/bounds.ts';
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import type { Millis } from '#shared/clock.ts';
import type { ProxyFailure } from './forwarded-request.ts';
import type { SocketConnection } from './socket-connection.ts';
import type { Upstream } from './upstream.ts';
import { LATE_REPLY } from './upstream-faults.ts';
import type { PoolCall, UpstreamPool } from './upstream-pool.ts';

/** If other requests wait for a connection, a client that reads nothing for this time loses its own. */
const UNREAD_MS_MAX_UNDER_PRESSURE: Millis = 2000;

export interface CallParts {
  readonly upstream: Upstream;
  readonly clients: Clients;
}

export class Holdings {
  readonly client: Client;
  connection: SocketConnection | null = null;
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
  constructor(client: Client, { upstream, clients }: CallParts) {
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

  /**
   * Tells what a call waited for in vain. A call that waited because of its client's own share, or for an upload slot,
   * did not wait for the upstream.
   */
  failureOfWait(): ProxyFailure {
    const { connection, pool } = this;
    if (connection !== null || pool === null) return LATE_REPLY;
    const refusal = pool.inUse.refusalFor(this.client);
    if (refusal === null || (refusal === 'total' && pool !== this.#upstream.uploads)) return LATE_REPLY;
    pool.inUse.refused(refusal);
    return { kind: 'bound', bound: pool.inUse.name, refusal };
  }

  /**
   * Decides about the connection of a reply that is being written: a slow or unread reply must not keep one that another
   * request waits for. A long reply becomes a stream, if there is room.
   *
   * @param streamingMs time since the first part was written
   * @param unreadMs time in which the client has read nothing
   * @returns false if the reply must be cut
   */
  mayKeepConnection(streamingMs: Millis, unreadMs: Millis): boolean {
    const { connection, isStream, pool } = this;
    if (connection === null || isStream || pool === null) return true;
    if (unreadMs >= UNREAD_MS_MAX_UNDER_PRESSURE && pool.isShort) {
      pool.inUse.refused('total');
      return false;
    }
    if (streamingMs < this.#upstream.options.streamAfterMs) return true;
    const { streams } = this.#upstream.bounds;
    const refusal = streams.refusalFor(this.client);
    if (refusal === null) this.becomeStream();
    else if (pool.isShort) {
      streams.refused(refusal);
      return false;
    }
    return true;
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
