/** Recognizes the format of a log by its first lines. */

import { caddyReader } from './caddy.ts';
import { envoyReader } from './envoy.ts';
import { floodgateReader } from './floodgate.ts';
import type { FormatName, LineReader } from './logged-request.ts';
import { nginxReader } from './nginx.ts';
import { traefikReader } from './traefik.ts';

/** Names of header fields (lower case), each with the field of an Envoy log that has its value. */
export type HeaderFields = ReadonlyMap<string, string>;

const READERS: Readonly<Record<FormatName, (headers: HeaderFields) => LineReader>> = {
  floodgate: floodgateReader,
  nginx: nginxReader,
  traefik: traefikReader,
  caddy: caddyReader,
  envoy: envoyReader,
};

/** Creates a reader for one file. It keeps data about the file, so each file needs its own. */
export function readerOf(format: FormatName, headers: HeaderFields): LineReader {
  return READERS[format](headers);
}

/** @returns the reader that understands most of these lines; null if none understands any */
export function detectReader(lines: readonly string[], headers: HeaderFields): LineReader | null {
  let best: FormatName | null = null;
  let most = 0;
  for (const format of Object.keys(READERS) as FormatName[]) {
    const reader = readerOf(format, headers);
    const understood = lines.filter((line) => reader.read(line) !== null).length;
    if (understood > most) {
      best = format;
      most = understood;
    }
  }
  return best === null ? null : readerOf(best, headers);
}
