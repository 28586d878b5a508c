/** Reads the lines of a log, from a file or standard input, with or without gzip, in portions of bounded size. */
import { createReadStream } from 'node:fs';
import { pipeline, Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { createGunzip } from 'node:zlib';

/** Maximum length of a line. Longer ones are not requests, because a request line has at most 16 KiB. */
export const LINE_MAX = 65_536;

const PORTION_BYTES = 262_144;
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

/** The state of a log that is being read. */
export interface Progressing {
  /** Number of bytes read so far, before decompression. */
  bytesRead: number;
  /** Why the log ended too early; null if it did not. */
  cutShort: string | null;
}

/**
 * Yields the lines of one portion after the other, without their newlines. The end of a line that is too long is left
 * out.
 *
 * @param input a path, or a stream such as standard input
 * @throws the error of a file that cannot be read
 */
export async function* portionsOf(
  input: string | Readable,
  state: Progressing = { bytesRead: 0, cutShort: null },
): AsyncGenerator<readonly string[], undefined> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  for await (const chunk of decompressed(input, state)) {
    const lines = (rest + decoder.write(chunk)).split('\n');
    // One character more than LINE_MAX shows that the line is too long.
    rest = (lines.pop() ?? '').slice(0, LINE_MAX + 1);
    yield lines;
  }
  yield [rest + decoder.end()];
}

/** Detects gzip by the first bytes, not by the file name. */
async function* decompressed(input: string | Readable, state: Progressing): AsyncGenerator<Buffer> {
  const source =
    typeof input === 'string' ? createReadStream(input, { highWaterMark: PORTION_BYTES }) : input;
  const chunks: AsyncIterator<Buffer, undefined> = source[Symbol.asyncIterator]();
  let first: Buffer = Buffer.alloc(0);
  const whole = async function* (): AsyncGenerator<Buffer> {
    for (let chunk: Buffer | undefined = first; chunk !== undefined; chunk = (await chunks.next()).value) {
      state.bytesRead += chunk.length;
      yield chunk;
    }
  };
  try {
    while (first.length < GZIP_MAGIC.length) {
      const { value } = await chunks.next();
      if (value === undefined) break;
      first = Buffer.concat([first, value]);
    }
    if (!first.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC)) {
      yield* whole();
      return;
    }
    // The iteration throws the same errors as the callback gets.
    yield* pipeline(Readable.from(whole()), createGunzip({ chunkSize: PORTION_BYTES }), () => undefined);
  } catch (error) {
    // The file may still be written. The lines so far count.
    if ((error as NodeJS.ErrnoException).code?.startsWith('Z_') !== true) throw error;
    state.cutShort = 'the compressed data is damaged, or ends too early';
  } finally {
    source.destroy();
  }
}
