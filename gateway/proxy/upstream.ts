/**
 * The upstream's connections, and the line before them: with forward.ts and upgrade.ts all that knows undici. What is
 * finished within one turn of the event loop is written together.
 */
import { isIP } from 'node:net';
import { buildConnector, type Dispatcher, errors, Pool } from 'undici';
import type { Millis } from '#gateway/clock.ts';

/** One request, as the line sees it. */
export interface Exchange extends Dispatcher.DispatchHandler {
  /** Its turn has come: it holds a connection until it calls `release`. */
  dispatch(): void;
  /** The reply is whole; it goes out with the others of this turn. */
  writeWhole(): void;
}

export interface UpstreamOptions {
  /** http://host:port of the upstream; https: for TLS. */
  readonly origin: string;
  /** Until the head of the reply is there, the wait for a free connection included. */
  readonly timeoutMs: Millis;
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
 * undici, whose queue cannot be left: abandoned requests would pile up there.
 */
export class Upstream {
  readonly timeoutMs: Millis;
  readonly idleMs: Millis;
  unavailable = 0;
  timeouts = 0;
  /** Told to every reply: we are shutting down, open no further request on this connection. */
  draining = false;
  readonly #pool: Pool;
  readonly #connections: number;
  readonly #waitingMax: number;
  /** Name in the certificate. undici would take it from the Host header, which is the client's to choose. */
  readonly servername: string;
  #busy = 0;
  /** In order of arrival. */
  readonly #waiting = new Set<Exchange>();
  #finished: Exchange[] = [];

  constructor(options: UpstreamOptions) {
    this.timeoutMs = options.timeoutMs;
    this.idleMs = options.idleMs ?? IDLE_MS;
    this.#connections = options.connections ?? CONNECTIONS;
    this.#waitingMax = options.waitingMax ?? WAITING_MAX;
    this.servername = new URL(options.origin).hostname.replace(/^\[|\]$/g, '');
    const connect = buildConnector({
      timeout: Math.min(CONNECT_TIMEOUT_MS, options.timeoutMs),
      // Replies are read as HTTP/1.1 has them: raw headers, 101, connections to count.
      allowH2: false,
    });
    this.#pool = new Pool(options.origin, {
      connections: this.#connections,
      pipelining: 1,
      allowH2: false,
      connect: (target, callback) => {
        // An address is no server name (RFC 6066 3).
        const { servername, ...address } = target;
        connect(isIP(this.servername) === 0 ? target : address, callback);
      },
      headersTimeout: options.timeoutMs,
      bodyTimeout: this.idleMs,
    });
  }

  get saturated(): boolean {
    return this.#waiting.size >= this.#waitingMax;
  }

  /** Takes a connection for the exchange, now or when its turn comes. @returns whether it was now */
  enter(exchange: Exchange): boolean {
    if (this.#busy >= this.#connections) {
      this.#waiting.add(exchange);
      return false;
    }
    this.#busy++;
    return true;
  }

  /** Gives up waiting. */
  leave(exchange: Exchange): void {
    this.#waiting.delete(exchange);
  }

  /** Gives the connection back. */
  release(): void {
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      next.dispatch();
      return;
    }
    this.#busy--;
  }

  dispatch(request: Dispatcher.DispatchOptions, exchange: Exchange): void {
    this.#pool.dispatch(request, exchange);
  }

  finish(exchange: Exchange): void {
    if (this.#finished.push(exchange) === 1) setImmediate(() => this.#flush());
  }

  stats(): UpstreamStats {
    return { waiting: this.#waiting.size, unavailable: this.unavailable, timeouts: this.timeouts };
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  #flush(): void {
    const finished = this.#finished;
    this.#finished = [];
    for (const exchange of finished) exchange.writeWhole();
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
