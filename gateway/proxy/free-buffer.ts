/**
 * Memory of a body that has been passed on, given back at once. The buffers of fast uploads, left to the garbage collector,
 * live long enough to be taken for old ones, and V8 then collects everything 15 times a second: an upload of 1 MB cost
 * twice as much.
 */

/** Smaller ones may share their memory with others, and are no burden. */
const BYTES_MIN = 16_384;
/** Since Node 21. Before, buffers are left to the collector. */
const CAN_FREE = 'transfer' in ArrayBuffer.prototype;

/** @returns its memory, if it is large and nobody else's; else null */
export function ownMemory(chunk: unknown): ArrayBuffer | null {
  if (!CAN_FREE || !Buffer.isBuffer(chunk) || chunk.length <= BYTES_MIN) return null;
  const { buffer } = chunk;
  return buffer instanceof ArrayBuffer && buffer.byteLength === chunk.length ? buffer : null;
}

/** Whoever still has the buffer finds it empty. @returns how many bytes that were */
export function free(memory: ArrayBuffer): number {
  const { byteLength } = memory;
  // What is taken out is a copy without a byte, and the rest is freed.
  memory.transfer(0);
  return byteLength;
}
