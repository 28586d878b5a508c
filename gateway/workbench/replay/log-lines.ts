/** Reads the lines of a log, from a file or standard input, with or without gzip, in portions of bounded size. */
import { createReadStream } from 'node:fs';
import { pipeline, Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { createGunzip } from 'node:zlib';

/** Maximum length of a line. Longer ones are not requests, because a request line has at most 16 KiB. */
export const LINE_MAX = 65_536;

const PORTION_BYTES = 262_144;
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

/**
 * Yields the lines of one portion after the other, without their newlines. The end of a line that is too long is left
 * out.
 *
 * @param input a path, or a stream such as standard input
 * @param onCutShort called with the reason if the log ends too early
 * @throws the error of a file that cannot be read
 */
export async function* portionsOf(
  input: string | Readable,
  onCutShort: (reason: string) => void,
): AsyncGenerator<readonly string[], undefined> {
  const source =
    typeof input === 'string' ? createReadStream(input, { highWaterMark: PORTION_BYTES }) : input;
  const decoder = new StringDecoder('utf8');
  let rest = '';
  try {
    for await (const chunk of await decompressed(source)) {
      const lines = (rest + decoder.write(chunk)).split('\n');
      // One character more than LINE_MAX shows that the line is too long.
      rest = (lines.pop() ?? '').slice(0, LINE_MAX + 1);
      yield lines;
    }
  } catch (error) {
    // The file may still be written. The lines so far count.
    if ((error as NodeJS.ErrnoException).code?.startsWith('Z_') !== true) throw error;
    onCutShort('the compressed data is damaged, or ends too early');
  } finally {
    source.destroy();
  }
  yield [rest + decoder.end()];
}

/** Detects gzip by the first bytes, not by the file name. */
async function decompressed(source: Readable): Promise<Readable> {
  const chunks: AsyncIterableIterator<Buffer> = source[Symbol.asyncIterator]();
  let first: Buffer = Buffer.alloc(0);
  while (first.length < GZIP_MAGIC.length) {
    const { value } = await chunks.next();
    if (value === undefined) break;
    first = Buffer.concat([first, value]);
  }
  const whole = Readable.from(joined(first, chunks));
  if (!first.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC)) return whole;
  // The iteration throws the same errors as the callback gets.
  return pipeline(whole, createGunzip({ chunkSize: PORTION_BYTES }), () => undefined);
}

async function* joined(first: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield* rest;
}
