/**
 * Closes connections without losing the reply. If a connection is closed while the peer still sends, it is reset, and
 * the reset can overtake the reply. So the gateway first reads and discards incoming bytes, up to a bound in bytes and
 * time.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Millis } from '#shared/clock.ts';
import type { UnreadBody } from './client-exchange.ts';
import { free, ownMemory } from './free-buffer.ts';

const DRAIN_BYTES_MAX = 8 * 1024 * 1024;
const DRAIN_MS_MAX: Millis = 5000;

/** Discards the body of a request that was answered before it was read. @param body null without a body */
export function discardBody(body: UnreadBody | null): void {
  if (body === null || body.complete || body.destroyed) return;
  // Otherwise node:http drops the body after the reply, without a bound.
  body.read(0);
  // An upload reads through a 'readable' listener, which makes resume() do nothing. The exchange may remove its own
  // listener later in this tick.
  setImmediate(() => {
    if (body.complete || body.destroyed) return;
    const { socket } = body;
    let left = DRAIN_BYTES_MAX;
    const stop = (): void => {
      socket.destroy();
    };
    const timer = setTimeout(stop, DRAIN_MS_MAX);
    const forget = (): void => {
      clearTimeout(timer);
      socket.off('close', forget);
    };
    body.removeAllListeners('readable');
    body.on('data', (chunk: Buffer) => {
      left -= chunk.length;
      // Many refused uploads would soon start a full garbage collection.
      const memory = ownMemory(chunk);
      if (memory !== null) free(memory);
      if (left < 0) stop();
    });
    body.once('close', forget);
    // node:http does not emit 'close' on a request that was answered.
    socket.once('close', forget);
    body.resume();
  });
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
