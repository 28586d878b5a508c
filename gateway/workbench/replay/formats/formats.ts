/** The formats of logs, and how the first lines of a log show its format. */

import { floodgateReader } from './floodgate.ts';
import { caddyReader, envoyReader, traefikReader } from './json-logs.ts';
import type { LoggedRequest } from './logged-request.ts';
import { nginxReader } from './nginx.ts';

/** Names of header fields (lower case), each with the field of an Envoy log that has its value. */
export type HeaderFields = ReadonlyMap<string, string>;

/** Reads a line of one log. @returns null if the line is malformed */
export type ReadLine = (line: string) => LoggedRequest | null;

/** A reader may keep data about its log, so each log needs its own. */
const READERS = {
  floodgate: floodgateReader,
  nginx: nginxReader,
  traefik: traefikReader,
  caddy: caddyReader,
  envoy: envoyReader,
} satisfies Readonly<Record<string, (headers: HeaderFields) => ReadLine>>;

export type FormatName = keyof typeof READERS;
export const FORMATS = Object.keys(READERS) as readonly FormatName[];

export interface LineReader {
  readonly format: FormatName;
  readonly read: ReadLine;
}

export function readerOf(format: FormatName, headers: HeaderFields): LineReader {
  return { format, read: READERS[format](headers) };
}

/** @returns the reader that understands most of these lines; null if none understands any */
export function detectReader(lines: readonly string[], headers: HeaderFields): LineReader | null {
  const understood = ({ read }: LineReader): number => lines.filter((line) => read(line) !== null).length;
  const tried = FORMATS.map((format) => {
    const reader = readerOf(format, headers);
    return { format, lines: understood(reader) };
  });
  const best = tried.reduce((most, one) => (one.lines > most.lines ? one : most));
  return best.lines === 0 ? null : readerOf(best.format, headers);
}
