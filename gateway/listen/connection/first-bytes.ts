/** Reads the first bytes of a connection before its protocol is known, and puts back those that are not used. */
import type { Socket } from 'node:net';
import type { Millis } from '#shared/clock.ts';

/** @returns the number of used bytes; `more` if more are needed; `bad` if they do not belong to the protocol */
export type Look = (bytes: Buffer) => number | 'more' | 'bad';

type FirstBytes = 'good' | 'bad' | 'late' | 'gone';

/**
 * Reads until `look` decides. It gets all bytes received so far.
 * @param done called once. The socket is paused, and open unless it is `gone`
 */
export function readFirstBytes(
  socket: Socket,
  timeoutMs: Millis,
  look: Look,
  done: (found: FirstBytes) => void,
): void {
  let bytes: Buffer = Buffer.alloc(0);
  let isDone = false;
  const end = (found: FirstBytes): void => {
    if (isDone) return;
    isDone = true;
    clearTimeout(timer);
    socket.off('readable', read).off('end', gone).off('close', gone);
    done(found);
  };
  const gone = (): void => end('gone');
  const read = (): void => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    const used = look(bytes);
    if (used === 'more') return;
    const rest = bytes.subarray(used === 'bad' ? 0 : used);
    if (rest.length > 0) socket.unshift(rest);
    end(used === 'bad' ? 'bad' : 'good');
  };
  // When the time is over, first read the bytes that have arrived in the kernel.
  const timer = setTimeout(() => setImmediate(() => end('late')), timeoutMs);
  socket.on('readable', read).on('end', gone).on('close', gone);
}
