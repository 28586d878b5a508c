/**
 * The memory of what a body was read into, given back once a socket has taken it. Left to the collector it lives until
 * that comes by, and what survives two collections of the young until one of everything: V8 begins with those after 8 MB
 * of buffers, and each takes 20 milliseconds of processor time in which others wait.
 */
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';

/** Smaller ones are cheap to collect, and may share their memory with others. */
const BYTES_MIN = 16_384;

/**
 * Writes what nobody needs afterwards: a large `chunk` is empty once it has been written.
 *
 * @param socket what `to` writes to; only one of the kernel's is done with a chunk when it says so
 * @returns as `write` does
 */
export function writeLast(to: Writable, socket: unknown, chunk: Buffer): boolean {
  if (!isLarge(chunk) || !(socket instanceof Socket)) return to.write(chunk);
  return to.write(chunk, () => giveBack(chunk));
}

/** @param chunk what has been written, and is needed by nobody; nothing happens to what shares its memory */
export function giveBack(chunk: unknown): void {
  if (Buffer.isBuffer(chunk) && isLarge(chunk)) (chunk.buffer as ArrayBuffer).transfer(0);
}

/** And the only view of its memory, as what was read from a socket at once. */
function isLarge({ length, buffer }: Buffer): boolean {
  return length > BYTES_MIN && length === buffer.byteLength && buffer instanceof ArrayBuffer;
}
