/** One hostile client: raw sockets from one address, a bounded number of them, and a count of what it did and heard. */
import { connect, type Socket } from 'node:net';
import { ATTACKER_ADDRESS } from '../addresses.ts';

export const SOCKETS_MAX = 600;
const TICK_MS = 10;
/** So many new connections a tick at most: 1,000 a second. */
const OPENED_PER_TICK_MAX = 10;
/** What a flood leaves unanswered on one connection before it turns to the next. */
const OUTSTANDING_MAX = 8;
const STATUS = /HTTP\/1\.[01] (\d{3}) /g;

export interface AttackCounts {
  connected: number;
  /** Connections that were refused, or reset by the other side. */
  failed: number;
  /** Requests that were begun. */
  requests: number;
  socketsPeak: number;
  readonly answers: Record<string, number>;
}

export interface Connection {
  readonly socket: Socket;
  outstanding: number;
}

export interface ConnectOptions {
  /** Default true. false: what the target sends stays in the kernel's buffers. */
  readonly reads?: boolean;
  readonly allowHalfOpen?: boolean;
  /** Called for every chunk, after it was looked at. */
  readonly onData?: (connection: Connection, chunk: Buffer) => void;
}

export class Attacker {
  readonly counts: AttackCounts = { connected: 0, failed: 0, requests: 0, socketsPeak: 0, answers: {} };
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(port: number) {
    this.#port = port;
  }

  /** null once as many connections are open as one attacker has here. */
  connect(begin: (connection: Connection) => void, options: ConnectOptions = {}): Socket | null {
    if (this.#sockets.size >= SOCKETS_MAX) return null;
    const socket = connect({
      port: this.#port,
      host: '127.0.0.1',
      localAddress: ATTACKER_ADDRESS,
      noDelay: true,
      allowHalfOpen: options.allowHalfOpen ?? false,
    });
    const connection: Connection = { socket, outstanding: 0 };
    this.#sockets.add(socket);
    this.counts.socketsPeak = Math.max(this.counts.socketsPeak, this.#sockets.size);
    socket.on('error', () => {
      this.counts.failed++;
    });
    socket.once('close', () => this.#sockets.delete(socket));
    socket.once('connect', () => {
      this.counts.connected++;
      begin(connection);
    });
    if (options.reads !== false) {
      socket.on('data', (chunk: Buffer) => {
        this.#hear(connection, chunk);
        options.onData?.(connection, chunk);
      });
    }
    return socket;
  }

  /** Writes the beginning of a request, or all of it. */
  request({ socket }: Connection, bytes: string | Buffer): void {
    if (!socket.writable) return;
    this.counts.requests++;
    socket.write(bytes);
  }

  /** Keeps so many connections open, each begun alike; one that closes is replaced. */
  hold(connections: number, begin: (connection: Connection) => void, options: ConnectOptions = {}): void {
    let open = 0;
    this.every(TICK_MS, () => {
      for (let i = 0; i < OPENED_PER_TICK_MAX && open < connections; i++) {
        const socket = this.connect(begin, options);
        if (socket === null) return;
        open++;
        socket.once('close', () => open--);
      }
    });
  }

  /** So many acts a second, each at its own moment. */
  pace(perSecond: number, act: () => void): void {
    const began = performance.now();
    let done = 0;
    this.every(TICK_MS, () => {
      const due = Math.floor(((performance.now() - began) / 1000) * perSecond);
      // After a pause of this process there is no burst to catch up.
      if (due - done > perSecond / 10) done = due - Math.ceil(perSecond / 10);
      for (; done < due; done++) act();
    });
  }

  /** Requests at a rate over kept-alive connections. A full connection is passed over, never waited for. */
  flood(perSecond: number, connections: number, request: () => string | Buffer): void {
    const open: Connection[] = [];
    this.hold(connections, (connection) => {
      open.push(connection);
      connection.socket.once('close', () => open.splice(open.indexOf(connection), 1));
    });
    let next = 0;
    this.pace(perSecond, () => {
      for (let i = 0; i < open.length; i++) {
        const connection = open[next++ % open.length];
        if (connection === undefined || connection.outstanding >= OUTSTANDING_MAX) continue;
        connection.outstanding++;
        this.request(connection, request());
        return;
      }
    });
  }

  every(ms: number, act: () => void): void {
    this.#timers.add(setInterval(act, ms));
  }

  /** Again and again while the connection is open. */
  drip({ socket }: Connection, ms: number, act: () => void): void {
    const timer = setInterval(act, ms);
    socket.once('close', () => clearInterval(timer));
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    for (const socket of this.#sockets) socket.destroy();
  }

  #hear(connection: Connection, chunk: Buffer): void {
    const isHead = chunk.includes('HTTP/1.');
    if (!isHead) return;
    for (const [, status = ''] of chunk.toString('latin1').matchAll(STATUS)) {
      this.counts.answers[status] = (this.counts.answers[status] ?? 0) + 1;
      connection.outstanding = Math.max(0, connection.outstanding - 1);
    }
  }
}

/** @param headers lines without their end */
export function head(method: string, path: string, headers: readonly string[] = []): string {
  return `${[`${method} ${path} HTTP/1.1`, 'Host: bench.example', ...headers].join('\r\n')}\r\n\r\n`;
}

let made = 0;

/** Never twice the same in one process, and of equal length. */
export function invented(): string {
  made++;
  return `${made.toString(36).padStart(8, '0')}${((made * 2_654_435_761) >>> 0).toString(36).padStart(8, '0')}`;
}
