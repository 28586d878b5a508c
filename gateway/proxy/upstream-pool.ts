/**
 * Connections of one kind of work, and who waits for one. Clients take turns: however many requests of one client wait,
 * the next connection goes to another one. undici's own pool has one queue for all, which cannot be left, so abandoned
 * requests would pile up there.
 */
import type { Bound, Refusal } from '#gateway/bounds/bounds.ts';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { UpstreamConnection } from './exchange.ts';

/** A request, as the pool sees it. */
export interface PoolCall {
  readonly client: Client;
  /** False for a request that must not be sent twice: it gets no connection that the upstream may be closing. */
  readonly retryable: boolean;
  /** The connection is this request's own until it is given back. */
  onConnection(connection: UpstreamConnection): void;
}

export interface UpstreamPoolOptions {
  /** Connections in use. */
  readonly inUse: Bound;
  readonly waiting: Bound;
  readonly open: () => UpstreamConnection;
  readonly clock: Clock;
}

/**
 * A request that must not be sent twice gets a connection that was idle for at most this long, or a new one: an older one
 * may be closed by the upstream at the very moment at which we use it. All others are tried once more.
 */
const FRESH_MS: Millis = 1000;

export class UpstreamPool {
  readonly inUse: Bound;
  readonly #options: UpstreamPoolOptions;
  /** The last one used is the next one used: it is warm, and those that are not needed time out. */
  readonly #idle: UpstreamConnection[] = [];
  /** Who waits, by client; the client whose turn is next comes first. */
  readonly #queues = new Map<Client, Set<PoolCall>>();
  #waiting = 0;

  constructor(options: UpstreamPoolOptions) {
    this.#options = options;
    this.inUse = options.inUse;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** How many wait for want of connections, not for their own client's share. */
  get pressure(): number {
    const { inUse } = this.#options;
    if (this.#waiting === 0 || inUse.held < inUse.total) return 0;
    let count = 0;
    for (const [client, calls] of this.#queues) {
      count += Math.min(calls.size, Math.max(0, inUse.roomFor(client)));
    }
    return count;
  }

  /** Gives the call a connection, now or when its turn comes. @returns why it cannot even wait */
  enter(call: PoolCall): Refusal | null {
    const { inUse, waiting } = this.#options;
    const { client } = call;
    let queue = this.#queues.get(client);
    if (queue === undefined && inUse.take(client) === null) {
      this.#give(call, this.#idle.pop());
      return null;
    }
    const refusal = waiting.take(client);
    if (refusal !== null) {
      waiting.refused(refusal);
      return refusal;
    }
    this.#waiting++;
    if (queue === undefined) {
      queue = new Set();
      this.#queues.set(client, queue);
    }
    queue.add(call);
    return null;
  }

  /** Gives up waiting. Does nothing for one that does not wait. */
  leave(call: PoolCall): void {
    if (this.#waiting === 0) return;
    const queue = this.#queues.get(call.client);
    if (queue?.delete(call) !== true) return;
    if (queue.size === 0) this.#queues.delete(call.client);
    this.#waiting--;
    this.#options.waiting.give(call.client);
  }

  /** Takes the connection back. */
  release(connection: UpstreamConnection, client: Client): void {
    const { inUse, clock } = this.#options;
    inUse.give(client);
    connection.idleSince = clock();
    if (this.#serveNext(connection)) return;
    this.put(connection);
  }

  /** The connection leaves this pool with its call, and makes room for another one. */
  detach(client: Client): void {
    this.#options.inUse.give(client);
    // Not from within the parser of a reply.
    if (this.#waiting > 0) setImmediate(() => this.#serveNext(undefined));
  }

  /** An idle connection, perhaps one that has left before: no more are kept than may be used. */
  put(connection: UpstreamConnection): void {
    const { inUse } = this.#options;
    if (this.#idle.length + inUse.held < inUse.total) this.#idle.push(connection);
    else setImmediate(() => void connection.close());
  }

  #serveNext(connection: UpstreamConnection | undefined): boolean {
    const { inUse } = this.#options;
    for (const [client, queue] of this.#queues) {
      if (inUse.take(client) !== null) continue;
      const [call] = queue;
      if (call === undefined) continue;
      // The client goes to the end of the line.
      this.#queues.delete(client);
      if (queue.size > 1) this.#queues.set(client, queue);
      queue.delete(call);
      this.#waiting--;
      this.#options.waiting.give(client);
      this.#give(call, connection ?? this.#idle.pop());
      return true;
    }
    return false;
  }

  #give(call: PoolCall, idle: UpstreamConnection | undefined): void {
    const { open, clock } = this.#options;
    if (idle !== undefined && !call.retryable && clock() - idle.idleSince > FRESH_MS) idle.renew();
    call.onConnection(idle ?? open());
  }
}
