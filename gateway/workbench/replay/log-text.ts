/**
 * Reads the lines of a log, from a file or standard input, with or without gzip. Memory is bounded: two portions, and
 * little more than LINE_MAX of a line.
 */
import { createReadStream } from 'node:fs';
import { pipeline, Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { createGunzip } from 'node:zlib';

/** Maximum length of a line. Longer ones are not requests, because a request line has at most 16 KiB. */
export const LINE_MAX = 65_536;

const PORTION_BYTES = 262_144;
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

export class LogText {
  readonly #input: string | Readable;
  /** Number of bytes read from the file, before decompression. */
  bytesRead = 0;
  /** Why the log ended too early; null if it did not. */
  cutShort: string | null = null;

  /** @param input a path, or a stream such as standard input */
  constructor(input: string | Readable) {
    this.#input = input;
  }

  /**
   * Yields the lines of one portion after the other, without their newlines. The end of a line that is too long is
   * left out.
   *
   * @throws the error of a file that cannot be read
   */
  async *portions(): AsyncGenerator<readonly string[], undefined> {
    const decoder = new StringDecoder('utf8');
    let rest = '';
    for await (const chunk of this.#decompressed()) {
      const lines = (rest + decoder.write(chunk)).split('\n');
      // One character more than LINE_MAX shows that the line is too long.
      rest = (lines.pop() ?? '').slice(0, LINE_MAX + 1);
      yield lines;
    }
    yield [rest + decoder.end()];
  }

  /** Detects gzip by the first bytes, not by the file name. */
  async *#decompressed(): AsyncGenerator<Buffer> {
    const chunks = this.#counted();
    let first: Buffer = Buffer.alloc(0);
    while (first.length < GZIP_MAGIC.length) {
      const { value, done } = await chunks.next();
      if (done === true) break;
      first = Buffer.concat([first, value]);
    }
    const whole = async function* (): AsyncGenerator<Buffer> {
      yield first;
      yield* chunks;
    };
    if (!first.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC)) {
      yield* whole();
      return;
    }
    const gunzip = createGunzip({ chunkSize: PORTION_BYTES });
    // The iteration below throws the same errors.
    pipeline(Readable.from(whole()), gunzip, () => undefined);
    try {
      yield* gunzip;
    } catch (error) {
      // The file may still be written. The lines so far count.
      if ((error as NodeJS.ErrnoException).code?.startsWith('Z_') !== true) throw error;
      this.cutShort = 'the compressed data is damaged, or ends too early';
    }
  }

  async *#counted(): AsyncGenerator<Buffer, undefined> {
    const input = this.#input;
    const source =
      typeof input === 'string' ? createReadStream(input, { highWaterMark: PORTION_BYTES }) : input;
    for await (const chunk of source) {
      this.bytesRead += chunk.length;
      yield chunk;
    }
  }
}
