/** Reads the requests of one log. Malformed lines are counted, and the first ones are kept. */
import type { Readable } from 'node:stream';
import {
  detectReader,
  type FormatName,
  type HeaderFields,
  type LineReader,
  readerOf,
} from './formats/formats.ts';
import type { LoggedRequest } from './formats/logged-request.ts';
import { LINE_MAX, type Progressing, portionsOf } from './log-text.ts';

export interface UnreadableLine {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

/** Counts of all logs of a run. */
export interface LineCounts {
  /** Number of lines without the empty ones. */
  lines: number;
  unreadable: number;
  readonly samples: UnreadableLine[];
}

export interface LogInput {
  readonly name: string;
  /** A path, or a stream such as standard input. */
  readonly input: string | Readable;
}

const SAMPLES_MAX = 5;
const SAMPLE_LENGTH = 120;
const LINES_TO_DETECT = 50;

/** Thrown if none of the first lines is a request in a known format. */
export class UnknownFormatError extends Error {}

export class LogFile {
  readonly name: string;
  readonly state: Progressing = { bytesRead: 0, cutShort: null };
  readonly #input: string | Readable;
  readonly #headers: HeaderFields;
  readonly #counts: LineCounts;
  #reader: LineReader | null;

  /** @param format null to recognize it by the first lines */
  constructor(
    { name, input }: LogInput,
    format: FormatName | null,
    headers: HeaderFields,
    counts: LineCounts,
  ) {
    this.name = name;
    this.#input = input;
    this.#headers = headers;
    this.#counts = counts;
    this.#reader = format === null ? null : readerOf(format, headers);
  }

  get format(): FormatName | null {
    return this.#reader?.format ?? null;
  }

  /**
   * Yields the requests of one portion after the other.
   *
   * @throws UnknownFormatError, or the error of a file that cannot be read
   */
  async *portions(): AsyncGenerator<readonly LoggedRequest[], undefined> {
    let before = 0;
    for await (const lines of portionsOf(this.#input, this.state)) {
      this.#reader ??= this.#detect(lines);
      yield lines.flatMap((line, i) => this.#read(withoutMarks(line, before + i), before + i + 1) ?? []);
      before += lines.length;
    }
  }

  #read(line: string, number: number): LoggedRequest | null {
    if (line === '') return null;
    this.#counts.lines++;
    const request = line.length > LINE_MAX ? null : (this.#reader?.read(line) ?? null);
    if (request === null) this.#noteUnreadable(line, number);
    return request;
  }

  #detect(all: readonly string[]): LineReader | null {
    const lines = all
      .slice(0, LINES_TO_DETECT)
      .map((line) => line.trim())
      .filter((line) => line !== '');
    if (lines.length === 0) return null;
    const reader = detectReader(lines, this.#headers);
    if (reader === null)
      throw new UnknownFormatError(
        `${this.name}: its first lines are no access log that is known here (${lines[0]?.slice(0, SAMPLE_LENGTH)})`,
      );
    return reader;
  }

  #noteUnreadable(text: string, line: number): void {
    this.#counts.unreadable++;
    if (this.#counts.samples.length >= SAMPLES_MAX) return;
    // This copies the text, because a slice would keep the whole portion.
    const shown = Buffer.from(text.slice(0, SAMPLE_LENGTH)).toString();
    this.#counts.samples.push({ file: this.name, line, text: shown });
  }
}

/** Removes the byte order mark of a file, and the carriage return of a line. */
function withoutMarks(line: string, at: number): string {
  const text = at === 0 && line.startsWith('\ufeff') ? line.slice(1) : line;
  return text.endsWith('\r') ? text.slice(0, -1) : text;
}
