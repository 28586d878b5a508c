/** Reads the chunks of a reply's body (RFC 9112 7.1). */
import { badChunk, hexDigit, isText } from './chunk-syntax.ts';
import { BadReplyError } from './exchange.ts';

/** Limit of a line with the size of a chunk and its extensions. */
const LINE_BYTES_MAX = 1024;
/** Limit of the trailer section, which is dropped. */
const TRAILER_BYTES_MAX = 16_384;
/** A size below this number may have a further digit. Leading zeros do not count. */
const SIZE_BEFORE_DIGIT_MAX = 16 ** 11;

type State =
  | 'chunk-size'
  | 'chunk-extension'
  | 'chunk'
  | 'chunk-end'
  /** At the start of a line behind the chunk of size 0. An empty line is the end. */
  | 'trailer-start'
  | 'trailer'
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
  #hasSize = false;
  /** Whether the last byte was a CR, so that an LF must follow. */
  #hasCr = false;
  #lineBytes = 0;

  /** Whether all lines obey the grammar, which demands CR LF at their ends. */
  isStrict = true;

  /** Whether the chunk of size 0 was read. The body is then complete, even without the empty line (RFC 9112 8). */
  get hasLastChunk(): boolean {
    return this.#state.startsWith('trailer');
  }

  get isDone(): boolean {
    return this.#state === 'end';
  }

  begin(): void {
    this.isStrict = true;
    this.#hasCr = false;
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
    this.#state = 'chunk-size';
    this.#left = 0;
    this.#hasSize = false;
    this.#lineBytes = 0;
  }

  /** Reads one byte outside of the chunks' data (RFC 9112 7.1). */
  #readByte(byte: number): void {
    if (++this.#lineBytes > (this.#state.startsWith('trailer') ? TRAILER_BYTES_MAX : LINE_BYTES_MAX))
      throw new BadReplyError("the upstream's reply has too much between its chunks");
    if (byte === LF) {
      this.isStrict &&= this.#hasCr;
      this.#hasCr = false;
      this.#endLine();
    } else if (this.#hasCr) throw badChunk();
    else if (byte === CR) this.#hasCr = true;
    else this.#readLineByte(byte);
  }

  #readLineByte(byte: number): void {
    switch (this.#state) {
      case 'chunk-size': {
        const digit = hexDigit(byte);
        if (digit >= 0 && this.#left < SIZE_BEFORE_DIGIT_MAX) {
          this.#left = this.#left * 16 + digit;
          this.#hasSize = true;
        } else if (this.#hasSize && (byte === 0x3b || byte === 0x20 || byte === 0x09))
          this.#state = 'chunk-extension';
        else throw badChunk();
        return;
      }
      case 'chunk-extension':
      case 'trailer-start':
      case 'trailer':
        if (!isText(byte)) throw badChunk();
        if (this.#state === 'trailer-start') this.#state = 'trailer';
        return;
      default:
        throw badChunk();
    }
  }

  #endLine(): void {
    switch (this.#state) {
      case 'chunk-size':
      case 'chunk-extension':
        if (!this.#hasSize) throw badChunk();
        this.#lineBytes = 0;
        this.#state = this.#left === 0 ? 'trailer-start' : 'chunk';
        return;
      case 'chunk-end':
        this.#beginSize();
        return;
      case 'trailer':
        this.#state = 'trailer-start';
        return;
      default:
        this.#state = 'end';
    }
  }
}
