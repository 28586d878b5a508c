/**
 * The upstream's connections, and the line before them: with forward.ts and upgrade.ts all that knows undici. Replies
 * that begin within one turn of the event loop are written together.
 */
import { isIP } from 'node:net';
import { buildConnector, Client, type Dispatcher, errors } from 'undici';
import type { Clock, Millis } from '#shared/clock.ts';
import { Deadlines, type Due } from './deadlines.ts';

/** One request, as the line sees it. */
export interface Exchange extends Dispatcher.DispatchHandler, Due {
  /** Its turn has come: the connection is its own until it calls `release`. */
  dispatch(connection: Client): void;
  /** The turn in which its reply began is over: what is there of it goes out, together with the others. */
  writeReply(): void;
}

export interface UpstreamOptions {
  /** http://host:port of the upstream; https: for TLS. */
  readonly origin: string;
  /** Until the head of the reply is there, the wait for a free connection included. */
  readonly timeoutMs: Millis;
  readonly clock: Clock;
  /** Requests in flight at once; the others wait in line. */
  readonly connections?: number;
  /** Requests that may wait in line; more are refused. */
  readonly waitingMax?: number;
  /** Between two pieces of a reply's body, and for a client that has stopped reading it. */
  readonly idleMs?: Millis;
}

export interface UpstreamStats {
  /** Requests that wait for a free connection. */
  readonly waiting: number;
  readonly unavailable: number;
  readonly timeouts: number;
}

const CONNECTIONS = 256;
const CONNECT_TIMEOUT_MS: Millis = 3000;
/** Finite, or a connection that lost its peer is never given back. */
const IDLE_MS: Millis = 300_000;
const WAITING_MAX = 10_000;

/**
 * The upstream's connections, and what all exchanges share. Who finds no connection free waits here rather than in
 * undici's pool: its queue cannot be left, so abandoned requests would pile up there, and it looks through its
 * connections for each request.
 */
export class Upstream {
  readonly timeoutMs: Millis;
  readonly idleMs: Millis;
  unavailable = 0;
  timeouts = 0;
  /** Told to every reply: we are shutting down, open no further request on this connection. */
  draining = false;
  /** Of the exchanges whose reply has not begun. */
  readonly deadlines: Deadlines;
  readonly #connect: () => Client;
  readonly #connectionsMax: number;
  readonly #waitingMax: number;
  /** Name in the certificate. undici would take it from the Host header, which is the client's to choose. */
  readonly servername: string;
  readonly #connections: Client[] = [];
  /** The last one used is the next one used: it is warm, and those that are not needed time out. */
  readonly #idle: Client[] = [];
  /** In order of arrival. */
  readonly #waiting = new Set<Exchange>();
  #begun: Exchange[] = [];

  constructor(options: UpstreamOptions) {
    this.timeoutMs = options.timeoutMs;
    this.deadlines = new Deadlines(options.timeoutMs, options.clock);
    this.idleMs = options.idleMs ?? IDLE_MS;
    this.#connectionsMax = options.connections ?? CONNECTIONS;
    this.#waitingMax = options.waitingMax ?? WAITING_MAX;
    this.servername = new URL(options.origin).hostname.replace(/^\[|\]$/g, '');
    const connect = buildConnector({
      timeout: Math.min(CONNECT_TIMEOUT_MS, options.timeoutMs),
      // Replies are read as HTTP/1.1 has them: raw headers, 101, connections to count.
      allowH2: false,
    });
    const clientOptions: Client.Options = {
      pipelining: 1,
      allowH2: false,
      connect: (target, callback) => {
        // An address is no server name (RFC 6066 3).
        const { servername, ...address } = target;
        connect(isIP(this.servername) === 0 ? target : address, callback);
      },
      headersTimeout: options.timeoutMs,
      bodyTimeout: this.idleMs,
    };
    this.#connect = () => new Client(options.origin, clientOptions);
  }

  get saturated(): boolean {
    return this.#waiting.size >= this.#waitingMax;
  }

  /** Gives the exchange a connection, now or when its turn comes. */
  enter(exchange: Exchange): void {
    const idle = this.#idle.pop();
    if (idle !== undefined) {
      exchange.dispatch(idle);
    } else if (this.#connections.length < this.#connectionsMax) {
      const connection = this.#connect();
      this.#connections.push(connection);
      exchange.dispatch(connection);
    } else this.#waiting.add(exchange);
  }

  /** Gives up waiting. */
  leave(exchange: Exchange): void {
    this.#waiting.delete(exchange);
  }

  /** Gives the connection back. */
  release(connection: Client): void {
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      next.dispatch(connection);
      return;
    }
    this.#idle.push(connection);
  }

  /** A reply has begun. */
  begin(exchange: Exchange): void {
    if (this.#begun.push(exchange) === 1) setImmediate(() => this.#flush());
  }

  stats(): UpstreamStats {
    return { waiting: this.#waiting.size, unavailable: this.unavailable, timeouts: this.timeouts };
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.destroy()));
  }

  #flush(): void {
    const begun = this.#begun;
    this.#begun = [];
    for (const exchange of begun) exchange.writeReply();
  }
}

/** The upstream closed a kept-alive connection just when we used it. */
export function isStaleConnection(error: Error): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE';
}

export function isTimeout(error: Error): boolean {
  return (
    error instanceof errors.HeadersTimeoutError ||
    error instanceof errors.BodyTimeoutError ||
    error instanceof errors.ConnectTimeoutError ||
    (error as NodeJS.ErrnoException).code === 'ETIMEDOUT'
  );
}
