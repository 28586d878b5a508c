/** The bytes between the chunks of a reply's body (RFC 9112 7.1). */
import { BadReplyError } from './exchange.ts';

export const badChunk = (): BadReplyError =>
  new BadReplyError("the chunks of the upstream's reply cannot be read");

/** Whether a byte is HTAB, printable ASCII or obs-text. */
export const isText = (byte: number): boolean => byte === 0x09 || (byte >= 0x20 && byte !== 0x7f);

/** @returns the value of a hexadecimal digit, from 0 to 15; -1 for other bytes */
export function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
