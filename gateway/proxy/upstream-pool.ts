/**
 * A pool of upstream connections with a line for each priority, in which some calls go behind the others. Clients are
 * served in turn: however many requests of one client wait, the next connection goes to another client of the same lane.
 */
import type { Bound, Refusal } from '#gateway/bounds/bounds.ts';
import type { Client } from '#gateway/bounds/clients.ts';
import { type Lane, PRIORITIES, type Priority } from '#gateway/bounds/priority.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { SocketConnection } from './socket-connection.ts';

export interface PoolCall extends Lane {
  readonly client: Client;
  /** Whether the request may be sent twice. Otherwise it gets no connection that the upstream may be closing. */
  readonly retryable: boolean;
  /** Called with a connection, which the request owns until it is released. */
  onConnection(connection: SocketConnection): void;
  /** Called when a request of a higher priority took its place in the queue. */
  onDisplaced(): void;
}

/** Waiting calls of one client, with the places that each of them takes. */
type Queue = Map<PoolCall, number>;
/** The first client is served next. */
type Queues = Map<Client, Queue>;

/** The waiting calls of one priority. */
interface Line {
  readonly front: Queues;
  readonly back: Queues;
  /** Number of calls in a row that were served from the front while the back waited. */
  passed: number;
}

const newLine = (): Line => ({ front: new Map(), back: new Map(), passed: 0 });

/** While front and back wait, one of so many places goes to the back. */
const BACK_EVERY = 10;

/** Bytes of a body that take as much memory as a waiting request. They take another place. */
const PLACE_BYTES = 8192;

interface UpstreamPoolOptions {
  readonly inUse: Bound;
  readonly waiting: Bound;
  readonly open: () => SocketConnection;
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
  readonly #idle: SocketConnection[] = [];
  readonly #lines: Readonly<Record<Priority, Line>> = {
    high: newLine(),
    normal: newLine(),
    low: newLine(),
  };
  #waiting = 0;

  constructor(options: UpstreamPoolOptions) {
    this.#options = options;
    this.inUse = options.inUse;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Whether a call waits because the pool is exhausted, and not because of its client's share. */
  get isShort(): boolean {
    const { inUse } = this;
    if (this.#waiting === 0 || inUse.held < inUse.limit) return false;
    return PRIORITIES.flatMap((priority) => [this.#lines[priority].front, this.#lines[priority].back])
      .flatMap((queues) => [...queues.keys()])
      .some((client) => inUse.roomFor(client) > 0);
  }

  waitingIn(lane: Lane): number {
    return sizeOf(this.#queuesIn(lane));
  }

  #queuesIn({ priority, isBehind }: Lane): Queues {
    return this.#lines[priority][isBehind ? 'back' : 'front'];
  }

  /**
   * Gives the call a connection, now or later.
   *
   * @param bytes number of bytes of its body that are in memory
   * @returns the reason if it cannot even wait; else null
   */
  enter(call: PoolCall, bytes: number): Refusal | null {
    const { inUse, waiting } = this.#options;
    const { client } = call;
    const queues = this.#queuesIn(call);
    let queue = queues.get(client);
    if (queue === undefined && inUse.take(client) === null) {
      this.#give(call, this.#idle.pop());
      return null;
    }
    const places = this.#placesFor(bytes);
    let refusal = waiting.take(client, places);
    while (refusal === 'total' && this.#displace(call)) refusal = waiting.take(client, places);
    if (refusal !== null) {
      waiting.refused(refusal);
      return refusal;
    }
    this.#waiting++;
    queue ??= new Map();
    queues.set(client, queue.set(call, places));
    return null;
  }

  /** Counts what has arrived for a call, if it waits. @returns the reason if there is no room for it; else null */
  grow(call: PoolCall, bytes: number): Refusal | null {
    const { waiting } = this.#options;
    const queue = this.#queuesIn(call).get(call.client);
    const places = queue?.get(call);
    const more = places === undefined ? 0 : this.#placesFor(bytes) - places;
    if (queue === undefined || places === undefined || more <= 0) return null;
    const refusal = waiting.take(call.client, more);
    if (refusal === null) queue.set(call, places + more);
    else waiting.refused(refusal);
    return refusal;
  }

  /** A body takes at most all places of a client, so that it can wait however few they are. */
  #placesFor(bytes: number): number {
    return Math.min(1 + Math.floor(bytes / PLACE_BYTES), this.#options.waiting.perClient);
  }

  /**
   * Makes room in the queue, at the cost of the client with most requests there. The back loses its places first. @returns
   * false if no waiting request has to go behind this one
   */
  #displace({ priority, isBehind }: Lane): boolean {
    const { front, back } = this.#lines[priority];
    const lower = PRIORITIES.slice(PRIORITIES.indexOf(priority) + 1).reverse();
    const lanes = lower.flatMap((one) => [this.#lines[one].back, this.#lines[one].front]);
    // The back keeps as many places in the queue as it is served.
    if (!isBehind && sizeOf(back) * (BACK_EVERY - 1) > sizeOf(front)) lanes.push(back);
    for (const lane of lanes) {
      let longest: Queue = new Map();
      for (const queue of lane.values()) if (queue.size > longest.size) longest = queue;
      const call = [...longest.keys()].at(-1);
      if (call === undefined) continue;
      this.leave(call);
      call.onDisplaced();
      return true;
    }
    return false;
  }

  leave(call: PoolCall): void {
    if (this.#waiting === 0) return;
    const queues = this.#queuesIn(call);
    const queue = queues.get(call.client);
    const places = queue?.get(call);
    if (queue === undefined || places === undefined) return;
    queue.delete(call);
    if (queue.size === 0) queues.delete(call.client);
    this.#waiting--;
    this.#options.waiting.give(call.client, places);
  }

  release(connection: SocketConnection, client: Client): void {
    const { inUse, clock } = this.#options;
    inUse.give(client);
    connection.idleSince = clock();
    if (!this.#serveNext(connection)) this.put(connection);
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
  put(connection: SocketConnection): void {
    const { inUse } = this.#options;
    if (this.#idle.length + inUse.held < inUse.total) this.#idle.push(connection);
    else setImmediate(() => connection.close());
  }

  #serveNext(connection: SocketConnection | undefined): boolean {
    const { inUse } = this.#options;
    if (inUse.held >= inUse.limit) return false;
    return PRIORITIES.some((priority) => this.#serveNextOf(this.#lines[priority], connection));
  }

  #serveNextOf(line: Line, connection: SocketConnection | undefined): boolean {
    const { front, back } = line;
    if (back.size === 0) return this.#serveFirst(front, connection);
    if (line.passed < BACK_EVERY - 1 && this.#serveFirst(front, connection)) {
      line.passed++;
      return true;
    }
    if (!this.#serveFirst(back, connection)) return this.#serveFirst(front, connection);
    line.passed = 0;
    return true;
  }

  #serveFirst(queues: Queues, connection: SocketConnection | undefined): boolean {
    const { inUse } = this.#options;
    for (const [client, queue] of queues) {
      if (inUse.take(client) !== null) continue;
      const [first] = queue;
      if (first === undefined) continue;
      const [call, places] = first;
      queues.delete(client);
      if (queue.size > 1) queues.set(client, queue);
      queue.delete(call);
      this.#waiting--;
      this.#options.waiting.give(client, places);
      this.#give(call, connection ?? this.#idle.pop());
      return true;
    }
    return false;
  }

  #give(call: PoolCall, idle: SocketConnection | undefined): void {
    const { open, clock } = this.#options;
    if (idle !== undefined && !call.retryable && clock() - idle.idleSince > FRESH_MS) idle.renew();
    call.onConnection(idle ?? open());
  }
}

function sizeOf(queues: Queues): number {
  let size = 0;
  for (const queue of queues.values()) size += queue.size;
  return size;
}
