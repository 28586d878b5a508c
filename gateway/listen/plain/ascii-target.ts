/**
 * Some clients send bytes beyond ASCII in the request target: curl with a URL as it was typed, and old scripts. A URI has
 * no such bytes, and node:http refuses them. Their percent-encoding means the same.
 */
import { encodeBeyondAscii } from '#gateway/policy/path-readings.ts';

/** No part of it repeats another one, so the time grows linearly with the length. */
const LINE = /^([A-Z-]+ )([^ \r\n]+)(?= HTTP\/1\.[01]\r?\n)/;
const BEYOND_ASCII = /[\x80-\xff]/;

/**
 * Encodes the target of the request line at the beginning of the bytes.
 *
 * @returns null if there is nothing to encode
 */
export function withAsciiTarget(bytes: Buffer): Buffer | null {
  const text = bytes.toString('latin1', 0, bytes.indexOf('\n') + 1);
  const [whole, method = '', target = ''] = LINE.exec(text) ?? [];
  if (whole === undefined || !BEYOND_ASCII.test(target)) return null;
  const line = Buffer.from(method + encodeBeyondAscii(target), 'latin1');
  return Buffer.concat([line, bytes.subarray(whole.length)]);
}
