/** Reads one log line by line. Malformed lines are counted, and the first ones are kept. */
import type { Readable } from 'node:stream';
import { detectReader, type HeaderFields, readerOf } from '#gateway/workbench/replay/formats/all.ts';
import type {
  FormatName,
  LineReader,
  LoggedRequest,
} from '#gateway/workbench/replay/formats/logged-request.ts';
import type { Millis } from '#shared/clock.ts';
import { CUT, LINE_MAX, LogText } from './log-text.ts';

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

/** The current line. Most lines are parsed only when they are next, so that waiting lines take little memory. */
export interface LogLine {
  readonly file: LineSource;
  readonly at: Millis;
  readonly text: string;
  readonly start: number;
  readonly end: number;
  readonly line: number;
  /** The parsed line, if it had to be parsed to find its time. */
  readonly request: LoggedRequest | null;
}

export interface LineSource {
  /** @returns null for a malformed line, which is counted */
  read(text: string, start: number, end: number, line: number, at: Millis): LoggedRequest | null;
}

interface LogFileOptions {
  readonly name: string;
  readonly input: string | Readable;
  /** Format of the log; null to recognize it by the first lines. */
  readonly format: FormatName | null;
  readonly headers: HeaderFields;
  readonly counts: LineCounts;
}

const SAMPLES_MAX = 5;
const SAMPLE_LENGTH = 120;
const LINES_TO_DETECT = 50;

/** Thrown if none of the first lines is a request in a known format. */
export class UnknownFormatError extends Error {}

export class LogFile implements LogLine, LineSource {
  readonly name: string;
  readonly file: LineSource = this;
  at: Millis = 0;
  text = '';
  start = 0;
  end = 0;
  line = 0;
  request: LoggedRequest | null = null;
  readonly #source: LogText;
  readonly #options: LogFileOptions;
  #reader: LineReader | null;
  #next = 0;

  constructor(options: LogFileOptions) {
    this.#options = options;
    this.name = options.name;
    this.#source = new LogText(options.input);
    this.#reader = options.format === null ? null : readerOf(options.format, options.headers);
  }

  get format(): FormatName | null {
    return this.#reader?.format ?? null;
  }

  get bytesRead(): number {
    return this.#source.bytesRead;
  }

  get cutShort(): string | null {
    return this.#source.cutShort;
  }

  /** Advances to the next line with a time. @returns false if `more` must be called */
  advance(): boolean {
    const { text } = this;
    const { counts } = this.#options;
    const reader = this.#reader;
    while (this.#next < text.length) {
      const start = this.#next;
      const newline = text.indexOf('\n', start);
      this.#next = newline + 1;
      this.line++;
      const end = text.charCodeAt(newline - 1) === 13 ? newline - 1 : newline;
      if (end <= start) continue;
      counts.lines++;
      this.start = start;
      this.end = end;
      this.request = null;
      this.at = reader === null || end - start > LINE_MAX ? Number.NaN : reader.time(text, start, end);
      if (!Number.isNaN(this.at)) return true;
      this.request = this.read(text, start, end, this.line, Number.NaN);
      if (this.request === null) continue;
      this.at = this.request.at;
      return true;
    }
    return false;
  }

  /**
   * Reads the next portion.
   *
   * @returns false at the end
   * @throws UnknownFormatError, or the error of a file that cannot be read
   */
  async more(): Promise<boolean> {
    const text = await this.#source.next();
    if (text === null) return false;
    this.text = this.line === 0 && text.startsWith('\ufeff') ? text.slice(1) : text;
    this.#next = 0;
    this.#reader ??= this.#detect();
    return true;
  }

  read(text: string, start: number, end: number, line: number, at: Millis): LoggedRequest | null {
    const request = end - start > LINE_MAX ? null : (this.#reader?.read(text, start, end, at) ?? null);
    if (request === null) this.#noteUnreadable(text, start, end, line);
    return request;
  }

  async close(): Promise<void> {
    await this.#source.close();
  }

  #detect(): LineReader | null {
    const lines = this.text
      .split('\n', LINES_TO_DETECT)
      .map((line) => line.trim())
      .filter((line) => line !== '');
    if (lines.length === 0) return null;
    const reader = detectReader(lines, this.#options.headers);
    if (reader === null)
      throw new UnknownFormatError(
        `${this.name}: its first lines are no access log that is known here (${lines[0]?.slice(0, SAMPLE_LENGTH)})`,
      );
    return reader;
  }

  #noteUnreadable(text: string, start: number, end: number, line: number): void {
    const { counts } = this.#options;
    counts.unreadable++;
    if (counts.samples.length >= SAMPLES_MAX) return;
    const shown = text.slice(start, Math.min(end, start + SAMPLE_LENGTH)).replace(CUT, '');
    // This copies the text, because a slice would keep the whole portion.
    counts.samples.push({ file: this.name, line, text: Buffer.from(shown).toString() });
  }
}
