/** Reads the chunks of a reply's body (RFC 9112 7.1). */
import { BadReplyError } from './exchange.ts';

/** Limit of a line with the size of a chunk and its extensions. */
const LINE_BYTES_MAX = 1024;
/** Limit of the trailer section, which is dropped. */
const TRAILER_BYTES_MAX = 16_384;

/** The places between the data of chunks. Each pattern also accepts the start of a line, so that bad bytes are refused at once. */
const LINES = {
  /** Up to 12 digits and leading zeros, and extensions. */
  size: /^(?:0*[0-9A-Fa-f]{1,12}(?:[\t ;][\t\x20-\x7e\x80-\xff]*)?)?\r?\n?$/,
  'after data': /^\r?\n?$/,
  /** Behind the chunk of size 0. An empty line is the end. */
  trailer: /^[\t\x20-\x7e\x80-\xff]*\r?\n?$/,
} as const;

type State = keyof typeof LINES | 'data' | 'end';

const LF = 10;

interface PieceListener {
  /** @param piece part of the buffer that was passed to `read` */
  onPiece(piece: Buffer): void;
}

export class ChunkReader {
  /** Whether all lines obey the grammar, which demands CR LF at their ends. */
  isStrict = true;
  #state: State = 'end';
  /** Remaining bytes of the chunk. */
  #left = 0;
  /** Start of an incomplete line. */
  #line = '';
  #trailerBytes = 0;

  /** Whether the chunk of size 0 was read. The body is then complete, even without the empty line (RFC 9112 8). */
  get hasLastChunk(): boolean {
    return this.#state === 'trailer';
  }

  get isDone(): boolean {
    return this.#state === 'end';
  }

  begin(): void {
    this.isStrict = true;
    this.#state = 'size';
    this.#line = '';
    this.#trailerBytes = 0;
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
        if (this.#state !== 'data') {
          at = this.#readLine(bytes, at, this.#state);
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
        if (this.#left === 0) this.#state = 'after data';
        at = to;
      }
    } finally {
      // If an error follows, the data before it is still valid.
      if (pieceFrom >= 0) listener.onPiece(bytes.subarray(pieceFrom, pieceTo));
    }
    return at;
  }

  /** Reads a line or a part of it. @returns offset behind it */
  #readLine(bytes: Buffer, from: number, kind: keyof typeof LINES): number {
    const lf = bytes.indexOf(LF, from);
    const end = lf < 0 ? bytes.length : lf + 1;
    const bytesMax = kind === 'trailer' ? TRAILER_BYTES_MAX - this.#trailerBytes : LINE_BYTES_MAX;
    const line = this.#line + bytes.toString('latin1', from, Math.min(end, from + bytesMax + 1));
    if (!LINES[kind].test(line)) throw badChunk();
    if (line.length > bytesMax)
      throw new BadReplyError("the upstream's reply has too much between its chunks");
    this.#line = lf < 0 ? line : '';
    if (lf >= 0) this.#endLine(kind, line);
    return end;
  }

  #endLine(kind: keyof typeof LINES, line: string): void {
    this.isStrict &&= line.endsWith('\r\n');
    if (kind === 'size') {
      this.#left = Number.parseInt(line, 16);
      if (Number.isNaN(this.#left)) throw badChunk();
      this.#state = this.#left === 0 ? 'trailer' : 'data';
    } else if (kind === 'after data') this.#state = 'size';
    else if (/^\r?\n$/.test(line)) this.#state = 'end';
    else this.#trailerBytes += line.length;
  }
}

const badChunk = (): BadReplyError => new BadReplyError("the chunks of the upstream's reply cannot be read");
