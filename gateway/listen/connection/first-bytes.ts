/** What a connection begins with, looked at before anybody takes it over. What is not used up is put back. */
import type { Socket } from 'node:net';
import type { Millis } from '#shared/clock.ts';

/** How many bytes are used up; `more`: it cannot be said yet; `bad`: it is nothing that belongs there. */
export type Look = (bytes: Buffer) => number | 'more' | 'bad';

type FirstBytes = 'good' | 'bad' | 'late' | 'gone';

/**
 * Reads until `look` has seen enough. The bytes that it gets are all that have come so far.
 *
 * @param done called once; the socket is paused then, and open unless it is `gone`
 */
export function readFirstBytes(
  socket: Socket,
  timeoutMs: Millis,
  look: Look,
  done: (found: FirstBytes) => void,
): void {
  let bytes: Buffer = Buffer.alloc(0);
  const end = (found: FirstBytes): void => {
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
    if (used === 'bad') {
      end('bad');
      return;
    }
    if (used < bytes.length) socket.unshift(bytes.subarray(used));
    end('good');
  };
  const timer = setTimeout(() => end('late'), timeoutMs);
  socket.on('readable', read).on('end', gone).on('close', gone);
}
