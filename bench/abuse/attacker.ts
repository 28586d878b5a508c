/** One hostile client: raw sockets from one address, and a count of what it did. */
import { connect, type Socket } from 'node:net';

export const ATTACKER_ADDRESS = '127.0.0.2';
const SOCKETS_MAX = 600;
const TICK_MS = 10;
/** New connections in one tick: at most 1,000 a second. */
const OPENED_PER_TICK_MAX = 10;
const FLOOD_CONNECTIONS = 50;
/** A flood leaves at most so many requests unanswered on one connection. */
const OUTSTANDING_MAX = 8;
const STATUS = /HTTP\/1\.[01] (\d{3}) /g;

export interface AttackCounts {
  connected: number;
  /** Requests that were begun. */
  requests: number;
  readonly answers: Record<string, number>;
}

/** Runs until the attacker is stopped. */
export type Attack = (attacker: Attacker) => void;

/** Describes a connection. */
interface Conduct {
  /** A request, or the beginning of one. Without it, the connection is silent. */
  readonly send?: string | Buffer | (() => string | Buffer);
  /** Is sent again and again, unless the connection is full. */
  readonly drip?: { readonly bytes: string | Buffer; readonly everyMs: number };
  readonly leaveAfterMs?: number;
  /** Leaves, or sends the same again, at every chunk of a reply. */
  readonly atReply?: 'leave' | 'send';
  /** Replies stay in the kernel's buffers. */
  readonly isUnread?: boolean;
  /** Ends its half after the request. */
  readonly isHalfClosed?: boolean;
  /** Does something else with it. */
  readonly act?: (socket: Socket, counts: AttackCounts) => void;
}

/** Keeps so many connections open. One that closes is replaced. */
export function hold(connections: number, conduct: Conduct): Attack {
  return (attacker) => attacker.hold(connections, conduct);
}

/** Opens so many connections a second. */
export function open(perSecond: number, conduct: Conduct): Attack {
  return (attacker) => attacker.open(perSecond, conduct);
}

/** Sends so many requests a second over kept-alive connections. It skips a connection with too many requests. */
export function flood(perSecond: number, request: () => string): Attack {
  return (attacker) => attacker.flood(perSecond, request);
}

export class Attacker {
  readonly counts: AttackCounts = { connected: 0, requests: 0, answers: {} };
  readonly #port: number;
  /** Its connections, and how many requests on each have no reply yet. */
  readonly #outstanding = new Map<Socket, number>();
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(port: number) {
    this.#port = port;
  }

  hold(connections: number, conduct: Conduct): void {
    let open = 0;
    this.#every(TICK_MS, () => {
      for (let i = 0; i < OPENED_PER_TICK_MAX && open < connections; i++) {
        const socket = this.#connect(conduct);
        if (socket === null) return;
        open++;
        socket.once('close', () => open--);
      }
    });
  }

  open(perSecond: number, conduct: Conduct): void {
    this.#pace(perSecond, () => this.#connect(conduct));
  }

  flood(perSecond: number, request: () => string): void {
    const open: Socket[] = [];
    this.hold(FLOOD_CONNECTIONS, {
      act(socket) {
        open.push(socket);
        socket.once('close', () => open.splice(open.indexOf(socket), 1));
      },
    });
    let next = 0;
    this.#pace(perSecond, () => {
      for (let i = 0; i < open.length; i++) {
        const socket = open[next++ % open.length];
        if (socket === undefined || (this.#outstanding.get(socket) ?? 0) >= OUTSTANDING_MAX) continue;
        this.#request(socket, request());
        return;
      }
    });
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    for (const socket of this.#outstanding.keys()) socket.destroy();
  }

  /** @returns null when it has too many connections already */
  #connect(conduct: Conduct): Socket | null {
    const { send, drip, leaveAfterMs, atReply, isUnread, isHalfClosed = false, act } = conduct;
    if (this.#outstanding.size >= SOCKETS_MAX) return null;
    const to = { port: this.#port, host: '127.0.0.1', localAddress: ATTACKER_ADDRESS };
    const socket = connect({ ...to, noDelay: true, allowHalfOpen: isHalfClosed });
    const request = (): void => {
      if (send !== undefined) this.#request(socket, typeof send === 'function' ? send() : send);
    };
    this.#outstanding.set(socket, 0);
    socket.on('error', () => undefined);
    socket.once('close', () => this.#outstanding.delete(socket));
    socket.once('connect', () => {
      this.counts.connected++;
      request();
      if (isHalfClosed) socket.end();
      if (leaveAfterMs !== undefined) setTimeout(() => socket.destroy(), leaveAfterMs);
      if (drip !== undefined)
        repeat(socket, drip.everyMs, () => {
          if (!socket.writableNeedDrain) socket.write(drip.bytes);
        });
      act?.(socket, this.counts);
    });
    if (isUnread === true) return socket;
    return socket.on('data', (chunk: Buffer) => {
      this.#count(socket, chunk);
      if (atReply === 'leave') socket.destroy();
      else if (atReply === 'send') request();
    });
  }

  #request(socket: Socket, bytes: string | Buffer): void {
    if (!socket.writable) return;
    this.counts.requests++;
    this.#outstanding.set(socket, (this.#outstanding.get(socket) ?? 0) + 1);
    socket.write(bytes);
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

  #count(socket: Socket, chunk: Buffer): void {
    if (!chunk.includes('HTTP/1.')) return;
    for (const [, status = ''] of chunk.toString('latin1').matchAll(STATUS)) {
      this.counts.answers[status] = (this.counts.answers[status] ?? 0) + 1;
      this.#outstanding.set(socket, Math.max(0, (this.#outstanding.get(socket) ?? 0) - 1));
    }
  }
}

/** Does something again and again while the connection is open. */
export function repeat(socket: Socket, everyMs: number, act: () => void): void {
  const timer = setInterval(act, everyMs);
  socket.once('close', () => clearInterval(timer));
}

/** The header section of a request. */
export function head(method: string, path: string, headers: readonly string[] = []): string {
  return `${[`${method} ${path} HTTP/1.1`, 'Host: bench.example', ...headers].join('\r\n')}\r\n\r\n`;
}

/** @returns gives one after the other, again and again */
export function inTurn<T>(things: readonly T[]): () => T {
  let i = 0;
  return () => things[i++ % things.length] as T;
}

let made = 0;

/** A text that no other call in this process returns. All have the same length. */
export function invented(): string {
  made++;
  return `${made.toString(36).padStart(8, '0')}${((made * 2_654_435_761) >>> 0).toString(36).padStart(8, '0')}`;
}
