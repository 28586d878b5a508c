/**
 * Reads the text of a log in whole lines, from a file or standard input, with or without gzip. Memory is bounded: a few
 * portions, and at most LINE_MAX of a line.
 */
import { closeSync, createReadStream, openSync, readSync, statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';

/** Maximum length of a line. Longer ones are not requests, because a request line has at most 16 KiB. */
export const LINE_MAX = 65_536;
/** Begins the rest of a line that was too long, so that no reader understands it. */
export const CUT = '\u0001';

/** Size of a portion. Larger texts are stored outside of V8's heap, where reading them takes half as long again. */
const PORTION_BYTES = 262_144;
/** Number of portions after which other tasks get a turn, such as the progress bar or a signal. */
const PORTIONS_PER_TURN = 32;
const SHOWN_OF_CUT = 200;
const NEWLINE = 10;
const GZIP_MAGIC = [0x1f, 0x8b];

export class LogText {
  readonly #chunks: AsyncIterator<Buffer>;
  #bytes: AsyncIterator<Buffer> | null = null;
  #rest: Buffer[] = [];
  #restBytes = 0;
  #isSkipping = false;
  #hasEnded = false;
  /** Text of whole lines that was not returned yet. */
  #ready: string | null = null;
  /** Number of bytes read from the file, before decompression. */
  bytesRead = 0;
  /** Why the log ended too early; null if it did not. */
  cutShort: string | null = null;

  /** @param input a path, or a stream such as standard input */
  constructor(input: string | Readable) {
    this.#chunks = typeof input === 'string' ? portionsOf(input) : input[Symbol.asyncIterator]();
  }

  /**
   * @returns some whole lines, each with its newline; null at the end
   * @throws the error of a file that cannot be read
   */
  async next(): Promise<string | null> {
    const ready = this.#ready;
    this.#ready = null;
    if (ready !== null) return ready;
    while (!this.#hasEnded) {
      const chunk = await this.#nextChunk();
      if (chunk === null) return this.#last();
      const end = chunk.lastIndexOf(NEWLINE) + 1;
      if (end > 0) {
        // The first line completes the rest of the last portion. It is joined alone and returned first.
        const begin = this.#restBytes === 0 && !this.#isSkipping ? 0 : chunk.indexOf(NEWLINE) + 1;
        const first = begin === 0 ? null : this.#complete(chunk.subarray(0, begin));
        const lines = begin === end ? null : chunk.toString('utf8', begin, end);
        if (end < chunk.length) this.#keep(chunk.subarray(end));
        if (first !== null) this.#ready = lines;
        if (first !== null || lines !== null) return first ?? lines;
      } else this.#keep(chunk);
    }
    return null;
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  async #nextChunk(): Promise<Buffer | null> {
    this.#bytes ??= await this.#open();
    try {
      const { value, done } = await this.#bytes.next();
      return done === true ? null : value;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // The file may still be written. The lines so far count.
      if (code?.startsWith('Z_') !== true) throw error;
      this.cutShort = 'the compressed data is damaged, or ends too early';
      return null;
    }
  }

  /** Detects gzip by the first bytes, not by the file name. */
  async #open(): Promise<AsyncIterator<Buffer>> {
    let first: Buffer = Buffer.alloc(0);
    while (first.length < GZIP_MAGIC.length) {
      const { value, done } = await this.#chunks.next();
      if (done === true) break;
      first = first.length === 0 ? value : Buffer.concat([first, value]);
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
        // This copies the chunk, because the portion is overwritten by the next read.
        if (!gunzip.write(Buffer.from(chunk)))
          await new Promise<void>((resolve) => whenWritable(gunzip, resolve));
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
    // This copies the chunk, so that the portion need not stay in memory for its last line.
    this.#rest.push(Buffer.from(chunk));
    this.#restBytes += chunk.length;
  }

  /** @param end of the current line, with its newline */
  #complete(end: Buffer): string {
    const rest = Buffer.concat(this.#rest);
    const wasSkipping = this.#isSkipping;
    this.#rest = [];
    this.#restBytes = 0;
    this.#isSkipping = false;
    return wasSkipping ? `${CUT}${rest.toString('utf8')}\n` : Buffer.concat([rest, end]).toString('utf8');
  }

  #last(): string | null {
    this.#hasEnded = true;
    if (this.#restBytes === 0) return null;
    return this.#complete(Buffer.from('\n'));
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

/**
 * Reads a file in portions. Each portion is valid until the next one is read. All are read into one buffer, which stays
 * in the caches.
 */
async function* portionsOf(path: string): AsyncGenerator<Buffer, undefined> {
  if (!statSync(path).isFile()) {
    yield* createReadStream(path, { highWaterMark: PORTION_BYTES });
    return;
  }
  const file = openSync(path, 'r');
  try {
    const portion = Buffer.allocUnsafeSlow(PORTION_BYTES);
    for (let i = 1; ; i++) {
      const bytes = readSync(file, portion);
      if (bytes === 0) return;
      yield portion.subarray(0, bytes);
      if (i % PORTIONS_PER_TURN === 0) await nextTurn();
    }
  } finally {
    closeSync(file);
  }
}
