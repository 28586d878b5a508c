/**
 * Counts the pieces in which a body comes. node:http hands over each chunk, and node:http2 each frame, by a call of its
 * own: about a microsecond, whatever is in it. So a body that comes in many pieces must have something in them.
 */
import type { Millis } from '#shared/clock.ts';

/** Shorter bodies are not judged. */
const PIECES_JUDGED = 1000;
/** Bytes that the pieces of a judged body hold on average. */
export const PIECE_BYTES_MIN = 64;
/** Of a piece that arrives in two reads we see two, so this much less is taken as well. */
const FORGIVEN_BYTES = 4;

export class PieceCount {
  pieces = 0;
  /** When the first piece came. */
  readonly begunAt: Millis;
  /** The body came in too small pieces; no more of it is wanted. */
  isCut = false;
  #bytes = 0;

  constructor(begunAt: Millis) {
    this.begunAt = begunAt;
  }

  /** On average, the pieces so far hold less than they have to. */
  get isSmall(): boolean {
    return this.#bytes < this.pieces * (PIECE_BYTES_MIN - FORGIVEN_BYTES);
  }

  /** Counts one more. @returns false: the body comes in too small pieces, and this one is not wanted any more */
  add(bytes: number): boolean {
    this.pieces++;
    this.#bytes += bytes;
    if (this.pieces >= PIECES_JUDGED && this.isSmall) this.isCut = true;
    return !this.isCut;
  }
}
