/**
 * The body of a request while it arrives. Its pieces wait here until they are taken. When many bytes wait, the gateway
 * stops reading from the client, so a body takes little memory however long it waits.
 */
import type { Socket } from 'node:net';

/** When this number of bytes of a body waits to be taken, the gateway stops reading from the client. */
export const BODY_AHEAD_BYTES = 16_384;

/** Smaller pieces are joined until they have this size together. */
export const JOINED_BYTES_MAX = 16_384;

/** Bodies with fewer pieces are not checked. */
const PIECES_JUDGED = 1000;
/** The smallest average of bytes in a piece. */
export const PIECE_BYTES_MIN = 64;
/** Tolerance, because a piece that arrives in two reads is seen as two. */
const FORGIVEN_BYTES = 4;

/**
 * Counts the pieces of a body. node:http calls back for each chunk, which takes about a microsecond whatever the size. So
 * the pieces of a body must have a minimum size on average.
 */
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

export interface PieceListener {
  /** Called once if the pieces of the body are too small. The rest of the body is discarded. */
  onSmallPieces(body: RequestBody): void;
}

export class RequestBody {
  readonly socket: Socket;
  /** Whether the whole body has arrived. */
  complete: boolean;
  readonly pieces = new PieceCount();
  /** Number of bytes that have arrived and were not taken. */
  waitingBytes = 0;
  /** Called when a piece or the end has arrived. If the client leaves, its exchange is closed instead. */
  onArrival: ((bytes: number) => void) | null = null;
  readonly #listener: PieceListener;
  readonly #read: () => void;
  #parts: Buffer[] = [];
  /** Whether the server has stopped reading. */
  #isStopped = false;

  /**
   * @param read makes the server read from the client, which stops when `arrive` returns false
   * @param complete whether the body is empty and has ended
   */
  constructor(socket: Socket, listener: PieceListener, read: () => void, complete: boolean) {
    this.socket = socket;
    this.complete = complete;
    this.#listener = listener;
    this.#read = read;
  }

  /** Whether so much waits that reading stops. */
  get isFull(): boolean {
    return !this.complete && this.waitingBytes >= BODY_AHEAD_BYTES;
  }

  /** Adds a piece. @param isLast whether the body ends with it. @returns false if the server must stop reading */
  arrive(piece: Buffer, isLast = false): boolean {
    this.complete = isLast;
    if (this.pieces.isCut) return true;
    if (!this.pieces.add(piece.length)) {
      this.#listener.onSmallPieces(this);
      return true;
    }
    this.#parts.push(piece);
    this.waitingBytes += piece.length;
    this.onArrival?.(piece.length);
    this.#isStopped = this.isFull;
    return !this.#isStopped;
  }

  finish(): void {
    this.complete = true;
    this.onArrival?.(0);
  }

  /** Makes the server read. Without this, node:http drops the rest of a body after the reply, without a bound. */
  read(): void {
    this.#read();
  }

  /** Calls back once the whole body has arrived, without taking it. Never calls back if the client leaves earlier. */
  whenComplete(then: () => void): void {
    this.onArrival = () => {
      if (!this.complete) return;
      this.onArrival = null;
      then();
    };
  }

  /**
   * Takes small pieces, joined, or one large piece.
   *
   * @returns null if nothing has arrived
   */
  take(): Buffer | null {
    const parts = this.#parts;
    const [first] = parts;
    if (first === undefined) return null;
    let count = 1;
    let bytes = first.length;
    for (let next = parts[1]; bytes < JOINED_BYTES_MAX && next !== undefined; next = parts[count]) {
      if (next.length >= JOINED_BYTES_MAX) break;
      bytes += next.length;
      count++;
    }
    const taken = count === parts.length ? parts : parts.slice(0, count);
    this.#parts = count === parts.length ? [] : parts.slice(count);
    this.waitingBytes -= bytes;
    if (this.#isStopped && !this.isFull) {
      this.#isStopped = false;
      this.#read();
    }
    return count === 1 ? first : Buffer.concat(taken, bytes);
  }

  /** Returns all bytes that wait. They stay here. */
  look(): Buffer {
    const [first] = this.#parts;
    if (first !== undefined && this.#parts.length === 1) return first;
    const bytes = Buffer.concat(this.#parts);
    this.#parts = bytes.length === 0 ? [] : [bytes];
    return bytes;
  }
}
