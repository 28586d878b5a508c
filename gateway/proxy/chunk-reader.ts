/** Reads the chunks of a reply's body (RFC 9112 7.1). */
import { badChunk, hexDigit, isText } from './chunk-syntax.ts';
import { BadReplyError } from './exchange.ts';

/** Limit of a line with the size of a chunk and its extensions. */
const LINE_BYTES_MAX = 1024;
/** Limit of the trailer section, which is dropped. */
const TRAILER_BYTES_MAX = 16_384;
const SIZE_DIGITS_MAX = 12;

type State =
  | 'chunk-size'
  | 'chunk-extension'
  | 'chunk-size-end'
  | 'chunk'
  | 'chunk-end'
  | 'trailer-start'
  | 'trailer'
  | 'trailer-line-end'
  | 'trailer-end'
  | 'end';

const CR = 13;
const LF = 10;

interface PieceListener {
  /** @param piece part of the buffer that was passed to `read` */
  onPiece(piece: Buffer): void;
}

export class ChunkReader {
  #state: State = 'end';
  /** Remaining bytes of the chunk. */
  #left = 0;
  #sizeDigits = 0;
  #lineBytes = 0;

  get isDone(): boolean {
    return this.#state === 'end';
  }

  begin(): void {
    this.#state = 'chunk-size';
    this.#beginSize();
  }

  /**
   * @param bytes are modified: the data of chunks is moved together, so that it becomes one piece
   * @returns offset of the first unread byte: the end of `bytes` or of the body
   */
  read(bytes: Buffer, from: number, listener: PieceListener): number {
    let at = from;
    let pieceFrom = -1;
    let pieceTo = -1;
    try {
      while (at < bytes.length && this.#state !== 'end') {
        if (this.#state !== 'chunk') {
          this.#readByte(bytes[at] ?? 0);
          at++;
          continue;
        }
        const to = Math.min(bytes.length, at + this.#left);
        if (pieceFrom < 0) {
          pieceFrom = at;
          pieceTo = to;
        } else {
          bytes.copyWithin(pieceTo, at, to);
          pieceTo += to - at;
        }
        this.#left -= to - at;
        if (this.#left === 0) this.#state = 'chunk-end';
        at = to;
      }
    } finally {
      // If an error follows, the data before it is still valid.
      if (pieceFrom >= 0) listener.onPiece(bytes.subarray(pieceFrom, pieceTo));
    }
    return at;
  }

  #beginSize(): void {
    this.#left = 0;
    this.#sizeDigits = 0;
    this.#lineBytes = 0;
  }

  /** Reads one byte outside of the chunks' data (RFC 9112 7.1). */
  #readByte(byte: number): void {
    if (++this.#lineBytes > (this.#state.startsWith('trailer') ? TRAILER_BYTES_MAX : LINE_BYTES_MAX))
      throw new BadReplyError("the upstream's reply has too much between its chunks");
    switch (this.#state) {
      case 'chunk-size': {
        const digit = hexDigit(byte);
        if (digit >= 0 && this.#sizeDigits < SIZE_DIGITS_MAX) {
          this.#left = this.#left * 16 + digit;
          this.#sizeDigits++;
          return;
        }
        if (this.#sizeDigits > 0 && byte === CR) this.#state = 'chunk-size-end';
        else if (this.#sizeDigits > 0 && (byte === 0x3b || byte === 0x20 || byte === 0x09))
          this.#state = 'chunk-extension';
        else throw badChunk();
        return;
      }
      case 'chunk-extension':
        if (byte === CR) this.#state = 'chunk-size-end';
        else if (!isText(byte)) throw badChunk();
        return;
      case 'chunk-size-end':
        if (byte !== LF) throw badChunk();
        this.#lineBytes = 0;
        this.#state = this.#left === 0 ? 'trailer-start' : 'chunk';
        return;
      case 'chunk-end':
        // A CR is valid here if an LF follows.
        if (byte === CR && this.#lineBytes === 1) return;
        if (byte !== LF || this.#lineBytes !== 2) throw badChunk();
        this.#beginSize();
        this.#state = 'chunk-size';
        return;
      case 'trailer-start':
        if (byte === CR) this.#state = 'trailer-end';
        else if (isText(byte)) this.#state = 'trailer';
        else throw badChunk();
        return;
      case 'trailer':
        if (byte === CR) this.#state = 'trailer-line-end';
        else if (!isText(byte)) throw badChunk();
        return;
      case 'trailer-line-end':
        if (byte !== LF) throw badChunk();
        this.#state = 'trailer-start';
        return;
      case 'trailer-end':
        if (byte !== LF) throw badChunk();
        this.#state = 'end';
        return;
      default:
        throw badChunk();
    }
  }
}
