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
  /** Number of places that it takes while it waits: more with a body, which takes memory. */
  readonly places: number;
  /** Called with a connection, which the request owns until it is released. */
  onConnection(connection: SocketConnection): void;
  /** Called when a request of a higher priority took its place in the queue. */
  onDisplaced(): void;
}

/** Waiting calls of each client. The first client is served next. */
type Queues = Map<Client, Set<PoolCall>>;

const newLine = (): readonly [front: Queues, back: Queues] => [new Map(), new Map()];

/** While front and back wait, one of so many places goes to the back. */
const BACK_EVERY = 10;

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
  /** Number of calls that wait. */
  waiting = 0;
  readonly #options: UpstreamPoolOptions;
  /** Idle connections. They are used last in, first out, so that superfluous ones time out. */
  readonly #idle: SocketConnection[] = [];
  readonly #lines: Readonly<Record<Priority, ReturnType<typeof newLine>>> = {
    high: newLine(),
    normal: newLine(),
    low: newLine(),
  };
  /** Number of calls in a row that were served from a front while its back waited. */
  #passed = 0;

  constructor(options: UpstreamPoolOptions) {
    this.#options = options;
    this.inUse = options.inUse;
  }

  /** Whether a call waits because the pool is exhausted, and not because of its client's share. */
  get isShort(): boolean {
    const { inUse } = this;
    if (this.waiting === 0 || inUse.held < inUse.limit) return false;
    return Object.values(this.#lines)
      .flatMap(([front, back]) => [...front.keys(), ...back.keys()])
      .some((client) => inUse.roomFor(client) > 0);
  }

  waitingIn(lane: Lane): number {
    return sizeOf(this.#queuesIn(lane));
  }

  #queuesIn({ priority, isBehind }: Lane): Queues {
    return this.#lines[priority][isBehind ? 1 : 0];
  }

  /** Gives the call a connection, now or later. @returns the reason if it cannot even wait; else null */
  enter(call: PoolCall): Refusal | null {
    const { inUse, waiting } = this.#options;
    const { client } = call;
    const queues = this.#queuesIn(call);
    const queue = queues.get(client);
    if (queue === undefined && inUse.take(client) === null) {
      this.#give(call, this.#idle.pop());
      return null;
    }
    const places = this.#placesOf(call);
    let refusal = waiting.take(client, places);
    while (refusal === 'total' && this.#displace(call)) refusal = waiting.take(client, places);
    if (refusal !== null) {
      waiting.refused(refusal);
      return refusal;
    }
    this.waiting++;
    queues.set(client, (queue ?? new Set()).add(call));
    return null;
  }

  /** At most all places of a client, so that each call can wait however few they are. */
  #placesOf({ places }: PoolCall): number {
    return Math.min(places, this.#options.waiting.perClient);
  }

  /**
   * Makes room in the queue, at the cost of the client with most requests there. The back loses its places first. @returns
   * false if no waiting request has to go behind this one
   */
  #displace({ priority, isBehind }: Lane): boolean {
    const [front, back] = this.#lines[priority];
    const lower = PRIORITIES.slice(PRIORITIES.indexOf(priority) + 1).reverse();
    const lanes = lower.flatMap((one) => this.#lines[one].toReversed());
    // The back keeps as many places in the queue as it is served.
    if (!isBehind && sizeOf(back) * (BACK_EVERY - 1) > sizeOf(front)) lanes.push(back);
    for (const lane of lanes) {
      let longest = new Set<PoolCall>();
      for (const queue of lane.values()) if (queue.size > longest.size) longest = queue;
      const call = [...longest].at(-1);
      if (call === undefined) continue;
      this.leave(call);
      call.onDisplaced();
      return true;
    }
    return false;
  }

  leave(call: PoolCall): void {
    if (this.waiting === 0) return;
    const queues = this.#queuesIn(call);
    const queue = queues.get(call.client);
    if (queue?.delete(call) !== true) return;
    if (queue.size === 0) queues.delete(call.client);
    this.#noLongerWaits(call);
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
    if (this.waiting > 0) setImmediate(() => this.#serveNext(undefined));
  }

  /** Serves all waiting calls that have room. */
  fill(): void {
    while (this.waiting > 0 && this.#serveNext(undefined));
  }

  /** Takes back an idle connection, including a detached one. Closes it if the pool is full. */
  put(connection: SocketConnection): void {
    const { inUse } = this.#options;
    if (this.#idle.length + inUse.held < inUse.total) this.#idle.push(connection);
    else setImmediate(() => connection.close());
  }

  #serveNext(connection: SocketConnection | undefined): boolean {
    const { inUse } = this.#options;
    if (this.waiting === 0 || inUse.held >= inUse.limit) return false;
    return PRIORITIES.some((priority) => {
      const [front, back] = this.#lines[priority];
      const isTurnOfBack = this.#passed >= BACK_EVERY - 1 && this.#serveFirst(back, connection);
      if (!isTurnOfBack && this.#serveFirst(front, connection)) {
        if (back.size > 0) this.#passed++;
        return true;
      }
      if (!isTurnOfBack && !this.#serveFirst(back, connection)) return false;
      this.#passed = 0;
      return true;
    });
  }

  #serveFirst(queues: Queues, connection: SocketConnection | undefined): boolean {
    const { inUse } = this.#options;
    for (const [client, queue] of queues) {
      if (inUse.take(client) !== null) continue;
      const [call] = queue;
      if (call === undefined) continue;
      queues.delete(client);
      queue.delete(call);
      if (queue.size > 0) queues.set(client, queue);
      this.#noLongerWaits(call);
      this.#give(call, connection ?? this.#idle.pop());
      return true;
    }
    return false;
  }

  #noLongerWaits(call: PoolCall): void {
    this.waiting--;
    this.#options.waiting.give(call.client, this.#placesOf(call));
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
