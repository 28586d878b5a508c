/** Reads the requests of one log. Malformed lines are counted, and the first ones are kept. */
import type { Readable } from 'node:stream';
import { detectReader, type HeaderFields, readerOf } from '#gateway/workbench/replay/formats/all.ts';
import type {
  FormatName,
  LineReader,
  LoggedRequest,
} from '#gateway/workbench/replay/formats/logged-request.ts';
import { LINE_MAX, LogText } from './log-text.ts';

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

export class LogFile {
  readonly name: string;
  readonly text: LogText;
  readonly #options: LogFileOptions;
  readonly #portions: AsyncGenerator<readonly string[], undefined>;
  #reader: LineReader | null;
  #lines: readonly string[] = [];
  #next = 0;
  /** Number of the lines in earlier portions. */
  #linesBefore = 0;

  constructor(options: LogFileOptions) {
    this.#options = options;
    this.name = options.name;
    this.text = new LogText(options.input);
    this.#portions = this.text.portions();
    this.#reader = options.format === null ? null : readerOf(options.format, options.headers);
  }

  get format(): FormatName | null {
    return this.#reader?.format ?? null;
  }

  /** @returns the next request; null if `more` must be called */
  next(): LoggedRequest | null {
    const { counts } = this.#options;
    while (this.#next < this.#lines.length) {
      const line = withoutReturn(this.#lines[this.#next++] ?? '');
      if (line === '') continue;
      counts.lines++;
      const request = line.length > LINE_MAX ? null : (this.#reader?.read(line) ?? null);
      if (request !== null) return request;
      this.#noteUnreadable(line);
    }
    return null;
  }

  /**
   * Reads the next portion.
   *
   * @returns false at the end
   * @throws UnknownFormatError, or the error of a file that cannot be read
   */
  async more(): Promise<boolean> {
    this.#linesBefore += this.#lines.length;
    this.#next = 0;
    const { value: lines } = await this.#portions.next();
    if (lines === undefined) return false;
    const [first = '', ...others] = lines;
    this.#lines = first.startsWith('\ufeff') ? [first.slice(1), ...others] : lines;
    this.#reader ??= this.#detect();
    return true;
  }

  async close(): Promise<void> {
    await this.#portions.return(undefined);
  }

  #detect(): LineReader | null {
    const lines = this.#lines
      .slice(0, LINES_TO_DETECT)
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

  #noteUnreadable(text: string): void {
    const { counts } = this.#options;
    counts.unreadable++;
    if (counts.samples.length >= SAMPLES_MAX) return;
    const line = this.#linesBefore + this.#next;
    // This copies the text, because a slice would keep the whole portion.
    const shown = Buffer.from(text.slice(0, SAMPLE_LENGTH)).toString();
    counts.samples.push({ file: this.name, line, text: shown });
  }
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}
