/** One hostile client. It uses raw sockets from one address, and counts its connections, requests and answers. */
import { connect, type Socket } from 'node:net';

export const ATTACKER_ADDRESS = '127.0.0.2';
const SOCKETS_MAX = 600;
const TICK_MS = 10;
/** New connections in one tick: at most 1,000 a second. */
const OPENED_PER_TICK_MAX = 10;
const FLOOD_CONNECTIONS = 50;
/** Maximum number of unanswered requests on one connection of a flood. */
const OUTSTANDING_MAX = 8;
const STATUS = /HTTP\/1\.[01] (\d{3}) /g;

export interface AttackCounts {
  connected: number;
  /** Number of requests whose sending has begun. */
  requests: number;
  readonly answers: Record<string, number>;
}

/** Starts an attack, which runs until the attacker is stopped. */
export type Attack = (attacker: Attacker) => void;

/** How the attacker uses a connection. */
interface Conduct {
  /** A request, or the beginning of one. Without it, the connection is silent. */
  readonly send?: string | Buffer | (() => string | Buffer);
  /** Bytes to send repeatedly, unless the socket's buffer is full. */
  readonly drip?: { readonly bytes: string | Buffer; readonly everyMs: number };
  readonly leaveAfterMs?: number;
  /** Whether to leave at the first chunk of a reply. */
  readonly leavesAtReply?: boolean;
  /** Whether to never read replies, so that they fill the kernel's buffers. */
  readonly isUnread?: boolean;
  /** Whether to close its half of the connection after the request. */
  readonly isHalfClosed?: boolean;
  /** Does something else with the connection. */
  readonly act?: (socket: Socket) => void;
}

/** Keeps a number of connections open. A connection that closes is replaced. */
export function hold(connections: number, conduct: Conduct): Attack {
  return (attacker) => attacker.hold(connections, conduct);
}

/** Opens connections at an even rate. */
export function open(perSecond: number, conduct: Conduct): Attack {
  return (attacker) => attacker.open(perSecond, conduct);
}

/** Sends requests at an even rate over kept-alive connections. Skips connections with too many unanswered requests. */
export function flood(perSecond: number, request: () => string): Attack {
  return (attacker) => attacker.flood(perSecond, request);
}

export class Attacker {
  readonly counts: AttackCounts = { connected: 0, requests: 0, answers: {} };
  readonly #port: number;
  /** Number of unanswered requests on each open connection. */
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

  /** Opens a connection. @returns null if the attacker already has too many */
  #connect(conduct: Conduct): Socket | null {
    const { send, drip, leaveAfterMs, leavesAtReply, isUnread, isHalfClosed = false, act } = conduct;
    if (this.#outstanding.size >= SOCKETS_MAX) return null;
    const to = { port: this.#port, host: '127.0.0.1', localAddress: ATTACKER_ADDRESS };
    const socket = connect({ ...to, noDelay: true, allowHalfOpen: isHalfClosed });
    this.#outstanding.set(socket, 0);
    socket.on('error', () => undefined);
    socket.once('close', () => this.#outstanding.delete(socket));
    socket.once('connect', () => {
      this.counts.connected++;
      if (send !== undefined) this.#request(socket, typeof send === 'function' ? send() : send);
      if (isHalfClosed) socket.end();
      if (leaveAfterMs !== undefined) setTimeout(() => socket.destroy(), leaveAfterMs);
      if (drip !== undefined)
        repeat(socket, drip.everyMs, () => {
          if (!socket.writableNeedDrain) socket.write(drip.bytes);
        });
      act?.(socket);
    });
    if (isUnread === true) return socket;
    return socket.on('data', (chunk: Buffer) => {
      this.#count(socket, chunk);
      if (leavesAtReply === true) socket.destroy();
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
      // After a pause of this process, skip the missed actions instead of doing them in a burst.
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

/** Repeats an action while the connection is open. */
export function repeat(socket: Socket, everyMs: number, act: () => void): void {
  const timer = setInterval(act, everyMs);
  socket.once('close', () => clearInterval(timer));
}

/** Returns the header section of a request. */
export function head(method: string, path: string, headers: readonly string[] = []): string {
  return `${[`${method} ${path} HTTP/1.1`, 'Host: bench.example', ...headers].join('\r\n')}\r\n\r\n`;
}

export function get(path: string, headers: readonly string[] = []): string {
  return head('GET', path, headers);
}

/** @returns a function that returns the items in turn, and begins again after the last */
export function inTurn<T>(things: readonly T[]): () => T {
  let i = 0;
  return () => things[i++ % things.length] as T;
}

let made = 0;

/** Returns a new text with each call. All texts have the same length. */
export function invented(): string {
  made++;
  return `${made.toString(36).padStart(8, '0')}${((made * 2_654_435_761) >>> 0).toString(36).padStart(8, '0')}`;
}
