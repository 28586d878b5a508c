/**
 * A pool of upstream connections with a queue for each priority. Clients are served in turn: however many requests of
 * one client wait, the next connection goes to another client of the same priority.
 */
import type { Bound, Refusal } from '#gateway/bounds/bounds.ts';
import type { Client } from '#gateway/bounds/clients.ts';
import { PRIORITIES, type Priority } from '#gateway/bounds/priority.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { UpstreamConnection } from './exchange.ts';

export interface PoolCall {
  readonly client: Client;
  readonly priority: Priority;
  /** Whether the request may be sent twice. Otherwise it gets no connection that the upstream may be closing. */
  readonly retryable: boolean;
  /** Called with a connection, which the request owns until it is released. */
  onConnection(connection: UpstreamConnection): void;
  /** Called when a request of a higher priority took its place in the queue. */
  onDisplaced(): void;
}

/** Waiting calls by client. The first client is served next. */
type Queues = Map<Client, Set<PoolCall>>;

interface UpstreamPoolOptions {
  readonly inUse: Bound;
  readonly waiting: Bound;
  readonly open: () => UpstreamConnection;
  readonly clock: Clock;
}

/**
 * The upstream may close an idle connection just when it is used. Retryable requests are then sent again; all others
 * get a connection that was idle for at most this long, or a new one.
 */
const FRESH_MS: Millis = 1000;

export class UpstreamPool {
  readonly inUse: Bound;
  readonly #options: UpstreamPoolOptions;
  /** Idle connections. They are used last in, first out, so that superfluous ones time out. */
  readonly #idle: UpstreamConnection[] = [];
  readonly #lines: Readonly<Record<Priority, Queues>> = {
    high: new Map(),
    normal: new Map(),
    low: new Map(),
  };
  #waiting = 0;

  constructor(options: UpstreamPoolOptions) {
    this.#options = options;
    this.inUse = options.inUse;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Number of calls that wait because the pool is exhausted, not because of their client's share. */
  get pressure(): number {
    const { inUse } = this.#options;
    if (this.#waiting === 0 || inUse.held < inUse.limit) return 0;
    let count = 0;
    for (const priority of PRIORITIES) {
      for (const [client, calls] of this.#lines[priority]) {
        count += Math.min(calls.size, Math.max(0, inUse.roomFor(client)));
      }
    }
    return count;
  }

  waitingOf(priority: Priority): number {
    let count = 0;
    for (const calls of this.#lines[priority].values()) count += calls.size;
    return count;
  }

  /** Gives the call a connection, now or later. @returns the reason if it cannot even wait; else null */
  enter(call: PoolCall): Refusal | null {
    const { inUse, waiting } = this.#options;
    const { client } = call;
    const queues = this.#lines[call.priority];
    let queue = queues.get(client);
    if (queue === undefined && inUse.take(client) === null) {
      this.#give(call, this.#idle.pop());
      return null;
    }
    let refusal = waiting.take(client);
    if (refusal === 'total' && this.#displace(call.priority)) refusal = waiting.take(client);
    if (refusal !== null) {
      waiting.refused(refusal);
      return refusal;
    }
    this.#waiting++;
    if (queue === undefined) {
      queue = new Set();
      queues.set(client, queue);
    }
    queue.add(call);
    return null;
  }

  /**
   * Makes room in the queue, at the cost of the client with most requests there. @returns false if all waiting requests
   * have at least this priority
   */
  #displace(priority: Priority): boolean {
    for (const lower of PRIORITIES.slice(PRIORITIES.indexOf(priority) + 1).reverse()) {
      let longest: ReadonlySet<PoolCall> = new Set();
      for (const queue of this.#lines[lower].values()) if (queue.size > longest.size) longest = queue;
      const call = [...longest].at(-1);
      if (call === undefined) continue;
      this.leave(call);
      call.onDisplaced();
      return true;
    }
    return false;
  }

  leave(call: PoolCall): void {
    if (this.#waiting === 0) return;
    const queues = this.#lines[call.priority];
    const queue = queues.get(call.client);
    if (queue?.delete(call) !== true) return;
    if (queue.size === 0) queues.delete(call.client);
    this.#waiting--;
    this.#options.waiting.give(call.client);
  }

  release(connection: UpstreamConnection, client: Client): void {
    const { inUse, clock } = this.#options;
    inUse.give(client);
    connection.idleSince = clock();
    if (this.#serveNext(connection)) return;
    this.put(connection);
  }

  /** Removes the connection from the pool together with its call, which makes room for another one. */
  detach(client: Client): void {
    this.#options.inUse.give(client);
    // Serve the next call later, because this may be called from within the parser of a reply.
    if (this.#waiting > 0) setImmediate(() => this.#serveNext(undefined));
  }

  /** Serves all waiting calls that have room. */
  fill(): void {
    while (this.#waiting > 0 && this.#serveNext(undefined));
  }

  /** Takes back an idle connection, including a detached one. Closes it if the pool is full. */
  put(connection: UpstreamConnection): void {
    const { inUse } = this.#options;
    if (this.#idle.length + inUse.held < inUse.total) this.#idle.push(connection);
    else setImmediate(() => void connection.close());
  }

  #serveNext(connection: UpstreamConnection | undefined): boolean {
    const { inUse } = this.#options;
    if (inUse.held >= inUse.limit) return false;
    return PRIORITIES.some((priority) => this.#serveNextOf(this.#lines[priority], connection));
  }

  #serveNextOf(queues: Queues, connection: UpstreamConnection | undefined): boolean {
    const { inUse } = this.#options;
    for (const [client, queue] of queues) {
      if (inUse.take(client) !== null) continue;
      const [call] = queue;
      if (call === undefined) continue;
      queues.delete(client);
      if (queue.size > 1) queues.set(client, queue);
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
