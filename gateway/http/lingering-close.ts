/**
 * Endings that do not destroy the very answer they follow. Closing a connection on which the peer still sends resets
 * it, and the reset can overtake the answer; reading on for ever would serve an attacker. So what comes is read and
 * thrown away, up to a bound in bytes and time, and only then the connection is closed.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Millis } from '#shared/clock.ts';

const DRAIN_BYTES_MAX = 8 * 1024 * 1024;
const DRAIN_MS_MAX: Millis = 5000;

/** For a request that was answered before its body was read. Does nothing for one that was read to its end. */
export function discardBody(req: IncomingMessage): void {
  if (req.complete || req.destroyed) return;
  // Otherwise node:http throws the rest away by itself when the reply is out, without a bound.
  req.read(0);
  // An upload in progress reads through a 'readable' listener, beside which resume() does nothing; and undici may
  // still be winding up that reading in this very turn.
  setImmediate(() => {
    if (req.complete || req.destroyed) return;
    const { socket } = req;
    let left = DRAIN_BYTES_MAX;
    const stop = (): void => {
      socket.destroy();
    };
    const timer = setTimeout(stop, DRAIN_MS_MAX);
    const forget = (): void => {
      clearTimeout(timer);
      socket.off('close', forget);
    };
    req.removeAllListeners('readable');
    req.on('data', (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) stop();
    });
    req.once('close', forget);
    // Once a request has been answered, node:http no longer tells it that its connection is gone.
    socket.once('close', forget);
    req.resume();
  });
}

/** Takes the connection from node:http's parser: what still comes on it costs no more than reading. */
export function stopParsing(socket: Duplex): void {
  socket.removeAllListeners('data');
  // With a reader of our own, node:http no longer reads from the handle behind the stream's back.
  socket.on('data', () => undefined);
}

/** Ends our side, reads on until the peer has ended its own, and cuts a peer that does not. */
export function lingeringClose(socket: Duplex, lastWords?: string): void {
  if (socket.destroyed) return;
  if (!socket.writableEnded) socket.end(lastWords);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), DRAIN_MS_MAX);
  socket.once('close', () => clearTimeout(timer));
}
