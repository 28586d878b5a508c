/**
 * Memory of a body that has been passed on, given back at once. Left to the garbage collector, the buffers of fast bodies
 * live long enough to be taken for old ones, and V8 then collects everything 15 to 40 times a second: an upload of 1 MB
 * cost twice as much, and each collection takes up to 20 milliseconds of processor time in which others wait.
 */
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';

/** Smaller ones may share their memory with others, and are no burden. */
const BYTES_MIN = 16_384;
/** Since Node 21. Before, buffers are left to the collector. */
const CAN_FREE = 'transfer' in ArrayBuffer.prototype;

/** Who counts what there is to collect. */
export interface Garbage {
  /** So many bytes less. */
  freed(bytes: number): void;
}

/** @returns its memory, if it is large and nobody else's; else null */
export function ownMemory(chunk: unknown): ArrayBuffer | null {
  if (!CAN_FREE || !Buffer.isBuffer(chunk) || chunk.length <= BYTES_MIN) return null;
  const { buffer } = chunk;
  return buffer instanceof ArrayBuffer && buffer.byteLength === chunk.length ? buffer : null;
}

/** Whoever still has the buffer finds it empty. @returns how many bytes that were */
export function free(memory: ArrayBuffer): number {
  const { byteLength } = memory;
  // What is taken out is a copy without a byte, and the rest is freed. What is free already cannot be taken out of.
  if (byteLength > 0) memory.transfer(0);
  return byteLength;
}

/**
 * Writes what nobody needs afterwards: a large `chunk` is empty once it has been written.
 *
 * @param socket what `to` writes to; only one of the kernel's is done with a chunk when it says so
 * @returns as `write` does
 */
export function writeLast(to: Writable, socket: unknown, chunk: Buffer, garbage: Garbage): boolean {
  const memory = socket instanceof Socket ? ownMemory(chunk) : null;
  if (memory === null) return to.write(chunk);
  return to.write(chunk, (error) => {
    // After an error the kernel may not have taken it yet.
    if (error == null) garbage.freed(free(memory));
  });
}
