/**
 * Closes connections without losing the reply. If a connection is closed while the peer still sends, it is reset, and
 * the reset can overtake the reply. So the gateway first reads and discards incoming bytes, up to a bound in bytes and
 * time. Clients are read in turn, so that nobody waits for bytes that nobody needs.
 */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Turns } from '#gateway/bounds/turns.ts';
import type { Millis } from '#shared/clock.ts';
import { free, ownMemory } from './free-buffer.ts';
import type { RequestBody } from './request-body.ts';

const DRAIN_BYTES_MAX = 8 * 1024 * 1024;
const DRAIN_MS_MAX: Millis = 5000;

/** Discards the body of a request that was answered before it was read. @param body null without a body */
export function discardBody(body: RequestBody | null): void {
  if (body === null || body.complete || body.socket.destroyed) return;
  body.read();
  lingerAtEnd(body.socket, true);
  // The rest of most bodies arrives in this tick, and those need no timer.
  setImmediate(() => {
    if (body.complete || body.socket.destroyed) {
      lingerAtEnd(body.socket, false);
      return;
    }
    const discarding = new Discarding(body.socket);
    body.onArrival = () => {
      let bytes = 0;
      for (let part = body.take(); part !== null; part = body.take()) bytes += dropped(part);
      if (body.complete) discarding.end();
      else discarding.count(bytes);
    };
    body.onArrival(0);
  });
}

/** Frees the memory, because many refused uploads would soon start a full garbage collection. @returns its size */
function dropped(piece: Buffer): number {
  const { length } = piece;
  const memory = ownMemory(piece);
  if (memory !== null) free(memory);
  return length;
}

/** Bounds what is discarded in bytes and time. Beyond that, the connection is closed. */
class Discarding {
  readonly #socket: Duplex;
  readonly #owner: string;
  readonly #timer: NodeJS.Timeout;
  readonly #onClose = (): void => this.end();
  #left = DRAIN_BYTES_MAX;

  constructor(socket: Duplex) {
    this.#socket = socket;
    this.#owner = socket instanceof Socket ? (socket.remoteAddress ?? '') : '';
    this.#timer = setTimeout(() => socket.destroy(), DRAIN_MS_MAX);
    // node:http does not tell a request that was answered that its client has left.
    socket.once('close', this.#onClose);
  }

  /** Counts what was read. The connection is not read before its next turn. */
  count(bytes: number): void {
    this.#left -= bytes;
    if (this.#left < 0) this.#socket.destroy();
    else if (bytes > 0) waitForTurn(this.#owner, this.#socket);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#socket.off('close', this.#onClose);
    if (WAITING.delete(this.#owner, this.#socket)) this.#socket.resume();
    if (this.#socket instanceof Socket) lingerAtEnd(this.#socket, false);
  }
}

/** Connections by address of the client or proxy. */
const WAITING = new Turns<string, Duplex>();
/** A read returns up to 64 KiB and takes a few hundredths of a millisecond, so a fifth of the time goes into them. */
const TURNS = 4;
const TURNS_MS: Millis = 1;
let areTurnsDue = false;

function waitForTurn(owner: string, socket: Duplex): void {
  socket.pause();
  WAITING.add(owner, socket);
  if (areTurnsDue) return;
  areTurnsDue = true;
  setTimeout(giveTurns, TURNS_MS);
}

function giveTurns(): void {
  for (let i = 0; i < TURNS; i++) WAITING.next()?.resume();
  areTurnsDue = !WAITING.isEmpty;
  if (areTurnsDue) setTimeout(giveTurns, TURNS_MS);
}

/** Replaces the method that node:http calls after the last reply of a connection, or puts it back. */
function lingerAtEnd(socket: Socket, lingers: boolean): void {
  socket.destroySoon = lingers ? () => lingeringClose(socket) : Socket.prototype.destroySoon;
}

/** Ends the gateway's side, and discards what arrives until the peer ends its side or a bound is reached. */
export function lingeringClose(socket: Duplex, lastWords?: string | Uint8Array): void {
  if (socket.destroyed) return;
  if (!socket.writableEnded) socket.end(lastWords);
  const discarding = new Discarding(socket);
  socket.on('data', ({ length }: Buffer) => discarding.count(length));
  socket.resume();
}

/** Like lingeringClose, for a connection that nobody reads any more, not even node:http's parser. */
export function closeUnread(socket: Duplex, lastWords?: string | Uint8Array): void {
  if (socket.destroyed) return;
  socket.removeAllListeners('data');
  lingeringClose(socket, lastWords);
  // Once it is counted, a piece can go.
  socket.on('data', dropped);
}

/** Ends the gateway's side. What arrives until the peer ends its side, or the time is over, is not discarded. */
export function endSoon(socket: Duplex): void {
  if (socket.destroyed) return;
  if (!socket.writableEnded) socket.end();
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), DRAIN_MS_MAX);
  socket.once('close', () => clearTimeout(timer));
}

/**
 * Closes a connection on which no request is due. If one has arrived in the kernel, the connection stays open. Timers run
 * before sockets are read, so after a busy moment this is likely.
 */
export function closeUnlessUsed(socket: Socket): void {
  const { bytesRead } = socket;
  setImmediate(() => {
    if (socket.bytesRead === bytesRead) socket.destroy();
  });
}
