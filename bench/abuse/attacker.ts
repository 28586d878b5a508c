/** One hostile client: raw sockets from one address, and a count of what it did. */
import { connect, type Socket } from 'node:net';

export const ATTACKER_ADDRESS = '127.0.0.2';
const SOCKETS_MAX = 600;
const TICK_MS = 10;
/** New connections in one tick: at most 1,000 a second. */
const OPENED_PER_TICK_MAX = 10;
/** A flood leaves at most so many requests unanswered on one connection. */
const OUTSTANDING_MAX = 8;
const STATUS = /HTTP\/1\.[01] (\d{3}) /g;

export interface AttackCounts {
  connected: number;
  /** Requests that were begun. */
  requests: number;
  readonly answers: Record<string, number>;
}

export interface Connection {
  readonly socket: Socket;
  outstanding: number;
}

interface ConnectOptions {
  /** false: replies stay in the kernel's buffers. */
  readonly reads?: boolean;
  readonly allowHalfOpen?: boolean;
  /** Called for every chunk of a reply. */
  readonly onData?: (connection: Connection) => void;
}

type Begin = (connection: Connection) => void;

export class Attacker {
  readonly counts: AttackCounts = { connected: 0, requests: 0, answers: {} };
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(port: number) {
    this.#port = port;
  }

  /** @returns null when it has too many connections already */
  connect(begin: Begin, { reads = true, allowHalfOpen = false, onData }: ConnectOptions = {}): Socket | null {
    if (this.#sockets.size >= SOCKETS_MAX) return null;
    const to = { port: this.#port, host: '127.0.0.1', localAddress: ATTACKER_ADDRESS };
    const socket = connect({ ...to, noDelay: true, allowHalfOpen });
    const connection: Connection = { socket, outstanding: 0 };
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => this.#sockets.delete(socket));
    socket.once('connect', () => {
      this.counts.connected++;
      begin(connection);
    });
    if (reads) {
      socket.on('data', (chunk: Buffer) => {
        this.#count(connection, chunk);
        onData?.(connection);
      });
    }
    return socket;
  }

  /** Writes a request, or the beginning of one. */
  request({ socket }: Connection, bytes: string | Buffer): void {
    if (!socket.writable) return;
    this.counts.requests++;
    socket.write(bytes);
  }

  /** Keeps so many connections open. One that closes is replaced. */
  hold(connections: number, begin: Begin, options: ConnectOptions = {}): void {
    let open = 0;
    this.#every(TICK_MS, () => {
      for (let i = 0; i < OPENED_PER_TICK_MAX && open < connections; i++) {
        const socket = this.connect(begin, options);
        if (socket === null) return;
        open++;
        socket.once('close', () => open--);
      }
    });
  }

  /** Keeps so many connections open, with one request on each. */
  holdRequests(connections: number, request: string, options: ConnectOptions = {}): void {
    this.hold(connections, (connection) => this.request(connection, request), options);
  }

  /** Opens so many connections a second. */
  churn(perSecond: number, begin: Begin, options: ConnectOptions = {}): void {
    this.#pace(perSecond, () => this.connect(begin, options));
  }

  /** Sends so many requests a second, each on a connection that it closes after a while. */
  leave(perSecond: number, afterMs: number, request: string): void {
    this.churn(perSecond, (connection) => {
      this.request(connection, request);
      setTimeout(() => connection.socket.destroy(), afterMs);
    });
  }

  /** Sends so many requests a second over kept-alive connections. It skips a connection with too many requests. */
  flood(perSecond: number, request: () => string): void {
    const open: Connection[] = [];
    this.hold(50, (connection) => {
      open.push(connection);
      connection.socket.once('close', () => open.splice(open.indexOf(connection), 1));
    });
    let next = 0;
    this.#pace(perSecond, () => {
      for (let i = 0; i < open.length; i++) {
        const connection = open[next++ % open.length];
        if (connection === undefined || connection.outstanding >= OUTSTANDING_MAX) continue;
        connection.outstanding++;
        this.request(connection, request());
        return;
      }
    });
  }

  /** Repeats something while the connection is open. */
  drip({ socket }: Connection, ms: number, act: () => void): void {
    const timer = setInterval(act, ms);
    socket.once('close', () => clearInterval(timer));
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    for (const socket of this.#sockets) socket.destroy();
  }

  #pace(perSecond: number, act: () => void): void {
    const began = performance.now();
    let done = 0;
    this.#every(TICK_MS, () => {
      const due = Math.floor(((performance.now() - began) / 1000) * perSecond);
      // After a pause of this process it does not catch up with a burst.
      done = Math.max(done, due - Math.ceil(perSecond / 10));
      for (; done < due; done++) act();
    });
  }

  #every(ms: number, act: () => void): void {
    this.#timers.add(setInterval(act, ms));
  }

  #count(connection: Connection, chunk: Buffer): void {
    if (!chunk.includes('HTTP/1.')) return;
    for (const [, status = ''] of chunk.toString('latin1').matchAll(STATUS)) {
      this.counts.answers[status] = (this.counts.answers[status] ?? 0) + 1;
      connection.outstanding = Math.max(0, connection.outstanding - 1);
    }
  }
}

/** The header section of a request. */
export function head(method: string, path: string, headers: readonly string[] = []): string {
  return `${[`${method} ${path} HTTP/1.1`, 'Host: bench.example', ...headers].join('\r\n')}\r\n\r\n`;
}

let made = 0;

/** A text that no other call in this process returns. All have the same length. */
export function invented(): string {
  made++;
  return `${made.toString(36).padStart(8, '0')}${((made * 2_654_435_761) >>> 0).toString(36).padStart(8, '0')}`;
}
