/**
 * The buffer that a socket reads into (`onread` of node:net), so that a reply needs no stream and little memory. All
 * sockets share one. Pieces of replies are copied out of it; large bodies get buffers of their own.
 */

const READ_BYTES = 65_536;
/** Maximum size of a piece that is copied. Larger pieces get buffers of their own. */
const COPIED_BYTES_MAX = 16_384;

/**
 * All sockets read into this buffer. That is safe because libuv gets the buffer, reads and calls back in one step, and
 * nothing uses its content after the callback.
 */
const SHARED = Buffer.allocUnsafeSlow(READ_BYTES);

export class ReadBuffer {
  current: Buffer = SHARED;

  share(): void {
    this.current = SHARED;
  }

  /** @param piece was read into the buffer @returns the same bytes in memory that nothing else uses */
  take(piece: Buffer): Buffer {
    if (piece.length <= COPIED_BYTES_MAX) return Buffer.from(piece);
    const isOwn = piece.buffer === this.current.buffer && this.current !== SHARED;
    if (!isOwn || piece.length === READ_BYTES) this.current = Buffer.allocUnsafeSlow(READ_BYTES);
    if (isOwn && piece.length === READ_BYTES) return piece;
    const copy = Buffer.allocUnsafeSlow(piece.length);
    piece.copy(copy);
    return copy;
  }
}
