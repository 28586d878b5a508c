/**
 * Closes connections without losing the reply. If a connection is closed while the peer still sends, it is reset, and
 * the reset can overtake the reply. So the gateway first reads and discards incoming bytes, up to a bound in bytes and
 * time.
 */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
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
      for (let part = body.take(); part !== null; part = body.take()) discarding.drop(part);
      if (body.complete) discarding.end();
    };
    body.onArrival(0);
  });
}

/** Bounds what is discarded in bytes and time. Beyond that, the connection is closed. */
class Discarding {
  readonly #socket: Socket;
  readonly #timer: NodeJS.Timeout;
  readonly #onClose = (): void => this.end();
  #left = DRAIN_BYTES_MAX;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.#timer = setTimeout(() => socket.destroy(), DRAIN_MS_MAX);
    // node:http does not tell a request that was answered that its client has left.
    socket.once('close', this.#onClose);
  }

  drop(piece: Buffer): void {
    this.#left -= piece.length;
    // Many refused uploads would soon start a full garbage collection.
    const memory = ownMemory(piece);
    if (memory !== null) free(memory);
    if (this.#left < 0) this.#socket.destroy();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#socket.off('close', this.#onClose);
    lingerAtEnd(this.#socket, false);
  }
}

/** Replaces the method that node:http calls after the last reply of a connection, or puts it back. */
function lingerAtEnd(socket: Socket, lingers: boolean): void {
  socket.destroySoon = lingers ? () => lingeringClose(socket) : Socket.prototype.destroySoon;
}

/** Detaches the connection from node:http's parser. Later bytes are only read. */
export function stopParsing(socket: Duplex): void {
  socket.removeAllListeners('data');
  // Without a listener, node:http would go on reading from the handle directly.
  socket.on('data', () => undefined);
}

/** Ends the gateway's side, and reads until the peer ends its side or the time is over. */
export function lingeringClose(socket: Duplex, lastWords?: string | Uint8Array): void {
  if (socket.destroyed) return;
  if (!socket.writableEnded) socket.end(lastWords);
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
