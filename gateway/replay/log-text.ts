/**
 * The text of a log, whole lines at a time, from a file or standard input, compressed with gzip or not. What is in
 * memory is bounded: about two portions of a megabyte, and never more of a line than LINE_MAX.
 */
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';

/** Longer lines are no requests: a request line has at most 16 KiB. */
export const LINE_MAX = 65_536;
/** Begins what is left of a line that was too long; no reader understands it. */
export const CUT = '\u0001';

const PORTION_BYTES = 1_048_576;
const SHOWN_OF_CUT = 200;
const NEWLINE = 10;
const GZIP_MAGIC = [0x1f, 0x8b];

export class LogText {
  readonly #stream: Readable;
  readonly #chunks: AsyncIterator<Buffer>;
  #bytes: AsyncIterator<Buffer> | null = null;
  #rest: Buffer[] = [];
  #restBytes = 0;
  #isSkipping = false;
  #hasEnded = false;
  /** Of the file, compressed as it is. */
  bytesRead = 0;
  /** Why the log ended before its end; null when it did not. */
  cutShort: string | null = null;

  /** @param input a path, or a stream such as standard input */
  constructor(input: string | Readable) {
    this.#stream =
      typeof input === 'string' ? createReadStream(input, { highWaterMark: PORTION_BYTES }) : input;
    this.#chunks = this.#stream[Symbol.asyncIterator]();
  }

  /**
   * @returns some whole lines, each with its newline; null at the end
   * @throws the error of a file that cannot be read
   */
  async next(): Promise<string | null> {
    while (!this.#hasEnded) {
      const chunk = await this.#nextChunk();
      if (chunk === null) return this.#last();
      const end = chunk.lastIndexOf(NEWLINE);
      if (end < 0) {
        this.#keep(chunk);
        continue;
      }
      const lines = this.#take(chunk.subarray(0, end + 1));
      if (end + 1 < chunk.length) this.#keep(chunk.subarray(end + 1));
      if (lines !== '') return lines;
    }
    return null;
  }

  close(): void {
    this.#stream.destroy();
  }

  async #nextChunk(): Promise<Buffer | null> {
    this.#bytes ??= await this.#open();
    try {
      const { value, done } = await this.#bytes.next();
      return done === true ? null : value;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // Of a file that is still being written, or was not written to its end, what is there counts.
      if (code?.startsWith('Z_') !== true) throw error;
      this.cutShort = 'the compressed data is damaged, or ends too early';
      return null;
    }
  }

  /** Looks at the first bytes: a name says nothing. */
  async #open(): Promise<AsyncIterator<Buffer>> {
    let first: Buffer = Buffer.alloc(0);
    while (first.length < GZIP_MAGIC.length) {
      const { value, done } = await this.#chunks.next();
      if (done === true) break;
      first = Buffer.concat([first, value]);
    }
    const rest = this.#counted(first);
    if (!GZIP_MAGIC.every((byte, i) => first[i] === byte)) return rest;
    const gunzip = createGunzip({ chunkSize: PORTION_BYTES });
    void this.#feed(rest, gunzip);
    return gunzip[Symbol.asyncIterator]();
  }

  async *#counted(first: Buffer): AsyncGenerator<Buffer> {
    for (let chunk: Buffer | null = first; chunk !== null; ) {
      this.bytesRead += chunk.length;
      yield chunk;
      const { value, done } = await this.#chunks.next();
      chunk = done === true ? null : value;
    }
  }

  async #feed(chunks: AsyncIterable<Buffer>, gunzip: ReturnType<typeof createGunzip>): Promise<void> {
    try {
      for await (const chunk of chunks) {
        if (gunzip.destroyed) return;
        if (!gunzip.write(chunk)) await new Promise<void>((resolve) => whenWritable(gunzip, resolve));
      }
      gunzip.end();
    } catch (error) {
      gunzip.destroy(error as Error);
    }
  }

  #keep(chunk: Buffer): void {
    if (this.#isSkipping) return;
    if (this.#restBytes + chunk.length > LINE_MAX) {
      this.#isSkipping = true;
      const head = Buffer.concat([...this.#rest, chunk.subarray(0, SHOWN_OF_CUT)]).subarray(0, SHOWN_OF_CUT);
      this.#rest = [head];
      this.#restBytes = head.length;
      return;
    }
    // A copy: the portion itself need not live on for its last line.
    this.#rest.push(Buffer.from(chunk));
    this.#restBytes += chunk.length;
  }

  #take(lines: Buffer): string {
    if (this.#restBytes === 0 && !this.#isSkipping) return lines.toString('utf8');
    const rest = Buffer.concat(this.#rest);
    const wasSkipping = this.#isSkipping;
    this.#rest = [];
    this.#restBytes = 0;
    this.#isSkipping = false;
    if (!wasSkipping) return Buffer.concat([rest, lines]).toString('utf8');
    return `${CUT}${rest.toString('utf8')}\n${lines.toString('utf8', lines.indexOf(NEWLINE) + 1)}`;
  }

  #last(): string | null {
    this.#hasEnded = true;
    if (this.#restBytes === 0) return null;
    return this.#take(Buffer.from('\n'));
  }
}

function whenWritable(stream: ReturnType<typeof createGunzip>, resolve: () => void): void {
  const done = (): void => {
    stream.off('drain', done);
    stream.off('close', done);
    resolve();
  };
  stream.on('drain', done);
  stream.on('close', done);
}
