/**
 * A request that was answered before its body was read. Closing at once would reset the connection and could destroy
 * the very answer on its way; reading on for ever would serve an attacker. So the rest is read and thrown away, up to
 * a bound in bytes and time, and only then the connection is closed.
 */
import type { IncomingMessage } from 'node:http';
import type { Millis } from '#gateway/clock.ts';

const DRAIN_BYTES_MAX = 8 * 1024 * 1024;
const DRAIN_MS_MAX: Millis = 5000;

/** Call after the reply was written. Does nothing for a request that was read to its end. */
export function drain(req: IncomingMessage): void {
  if (req.complete || req.destroyed) return;
  // An upload in progress reads through a 'readable' listener, beside which resume() does nothing; and undici may
  // still be winding up that reading in this very turn.
  setImmediate(() => {
    if (req.complete || req.destroyed) return;
    let left = DRAIN_BYTES_MAX;
    const stop = (): void => {
      req.socket.destroy();
    };
    const timer = setTimeout(stop, DRAIN_MS_MAX);
    req.removeAllListeners('readable');
    req.on('data', (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) stop();
    });
    req.once('close', () => clearTimeout(timer));
    req.resume();
  });
}
