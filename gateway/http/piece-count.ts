/**
 * Counts the pieces of a body. node:http calls back for each chunk, which takes about a microsecond whatever the size. So
 * the pieces of a body must have a minimum size on average.
 */
/** Bodies with fewer pieces are not checked. */
const PIECES_JUDGED = 1000;
/** The smallest average of bytes in a piece. */
export const PIECE_BYTES_MIN = 64;
/** Tolerance, because a piece that arrives in two reads is seen as two. */
const FORGIVEN_BYTES = 4;

export class PieceCount {
  pieces = 0;
  /** Whether the pieces were too small. Then the rest of the body is dropped. */
  isCut = false;
  #bytes = 0;

  /** Whether the average size of the pieces so far is below the minimum. */
  get isSmall(): boolean {
    return this.#bytes < this.pieces * (PIECE_BYTES_MIN - FORGIVEN_BYTES);
  }

  /** Counts one more piece. @returns false if it must be discarded */
  add(bytes: number): boolean {
    this.pieces++;
    this.#bytes += bytes;
    if (this.pieces >= PIECES_JUDGED && this.isSmall) this.isCut = true;
    return !this.isCut;
  }
}
