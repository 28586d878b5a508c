/**
 * Reads several logs as one, in the order of time: rotated parts of a log in any order, and logs of several machines.
 * Several workers write to one log, and a line is written when its reply ends. So a slow request comes after fast ones
 * that arrived later. Malformed lines are counted, and the first ones are kept.
 */
import type { Readable } from 'node:stream';
import type { Millis } from '#shared/clock.ts';
import {
  detectReader,
  type FormatName,
  type HeaderFields,
  type LineReader,
  readerOf,
} from './formats/formats.ts';
import type { LoggedRequest } from './formats/logged-request.ts';
import { LINE_MAX, portionsOf } from './log-lines.ts';

interface LogInput {
  readonly name: string;
  /** A path, or a stream such as standard input. */
  readonly input: string | Readable;
}

/** A log with the requests of its current portion. */
interface Begun {
  readonly portions: AsyncIterator<readonly LoggedRequest[], undefined>;
  requests: readonly LoggedRequest[];
  next: number;
}

/** Receives the requests. The time never decreases. */
type TakeRequest = (request: LoggedRequest, at: Millis) => void;

/** Thrown if none of the first lines is a request in a known format. */
export class UnknownFormatError extends Error {}

/** Maximum number of logs, because each holds a portion of its text while it waits. */
export const LOGS_MAX = 64;
/** Maximum number of later requests that may come before a line. */
const LINES_BEHIND_MAX = 65_536;
/** Number of requests that are sorted and passed on at once. */
const BATCH = 8192;
const SAMPLES_MAX = 5;
const SAMPLE_LENGTH = 120;
const LINES_TO_DETECT = 50;

export class LogFiles {
  /** Number of lines without the empty ones. */
  lines = 0;
  unreadable = 0;
  readonly samples: { readonly file: string; readonly line: number; readonly text: string }[] = [];
  /** Logs that could not be read to their end, with the reason. */
  readonly cutShort: string[] = [];
  readonly formats = new Set<FormatName>();
  /** Requests that came too late after younger ones. They are counted at the time of those. */
  late = 0;
  readonly #files: readonly LogInput[];
  readonly #format: FormatName | null;
  readonly #headers: HeaderFields;
  readonly #held: { readonly at: Millis; readonly request: LoggedRequest }[] = [];
  #now: Millis = Number.NEGATIVE_INFINITY;

  /**
   * @param files at most LOGS_MAX
   * @param format null to recognize it by the first lines of each log
   */
  constructor(files: readonly LogInput[], format: FormatName | null, headers: HeaderFields) {
    this.#files = files;
    this.#format = format;
    this.#headers = headers;
  }

  /**
   * Calls back for all requests, ordered by time.
   *
   * @throws UnknownFormatError, or the error of a file that cannot be read
   */
  async each(take: TakeRequest): Promise<void> {
    const all = this.#files.map(
      (file): Begun => ({ portions: this.#portionsOf(file), requests: [], next: 0 }),
    );
    try {
      const open: Begun[] = [];
      for (const log of all) if (await hasNext(log)) open.push(log);
      for (;;) {
        open.sort((a, b) => timeOf(a) - timeOf(b));
        const [first, second] = open;
        if (first === undefined) break;
        const until = second === undefined ? Number.POSITIVE_INFINITY : timeOf(second);
        for (const request of first.requests.slice(first.next)) {
          if (request.at > until) break;
          first.next++;
          this.#hold(request, take);
        }
        if (!(await hasNext(first))) open.shift();
      }
      this.#handOut(this.#held.length, take);
    } finally {
      for (const { portions } of all) await portions.return?.(undefined);
    }
  }

  /** Yields the requests of one portion of a log after the other. */
  async *#portionsOf({ name, input }: LogInput): AsyncGenerator<readonly LoggedRequest[], undefined> {
    let reader = this.#format === null ? null : readerOf(this.#format, this.#headers);
    let before = 0;
    for await (const lines of portionsOf(input, (reason) => this.cutShort.push(`${name}: ${reason}`))) {
      reader ??= this.#detect(name, lines);
      if (reader !== null) this.formats.add(reader.format);
      const requests: LoggedRequest[] = [];
      for (const [i, marked] of lines.entries()) {
        const line = withoutMarks(marked, before + i);
        if (line === '') continue;
        this.lines++;
        const request = line.length > LINE_MAX ? null : (reader?.read(line) ?? null);
        if (request === null) this.#noteUnreadable(name, before + i + 1, line);
        else requests.push(request);
      }
      before += lines.length;
      yield requests;
    }
  }

  #detect(name: string, all: readonly string[]): LineReader | null {
    const first = all.slice(0, LINES_TO_DETECT).map((line) => line.trim());
    const lines = first.filter((line) => line !== '');
    if (lines.length === 0) return null;
    const reader = detectReader(lines, this.#headers);
    if (reader !== null) return reader;
    const text = lines[0]?.slice(0, SAMPLE_LENGTH);
    throw new UnknownFormatError(`${name}: its first lines are no access log that is known here (${text})`);
  }

  #noteUnreadable(file: string, line: number, text: string): void {
    this.unreadable++;
    if (this.samples.length >= SAMPLES_MAX) return;
    // This copies the text, because a slice would keep the whole portion.
    this.samples.push({ file, line, text: Buffer.from(text.slice(0, SAMPLE_LENGTH)).toString() });
  }

  #hold(request: LoggedRequest, take: TakeRequest): void {
    const at = Math.floor(request.at);
    if (at < this.#now) this.late++;
    this.#held.push({ at: Math.max(at, this.#now), request });
    if (this.#held.length >= LINES_BEHIND_MAX + BATCH) this.#handOut(BATCH, take);
  }

  /** Passes on the oldest requests. Those of the same time keep their order. */
  #handOut(count: number, take: TakeRequest): void {
    this.#held.sort((a, b) => a.at - b.at);
    for (const { at, request } of this.#held.splice(0, count)) {
      this.#now = at;
      take(request, at);
    }
  }
}

/** Reads a further portion if the log needs one. @returns false at its end */
async function hasNext(log: Begun): Promise<boolean> {
  while (log.next === log.requests.length) {
    const { value } = await log.portions.next();
    if (value === undefined) return false;
    log.requests = value;
    log.next = 0;
  }
  return true;
}

/** Returns the time of the next request. */
function timeOf({ requests, next }: Begun): Millis {
  return requests[next]?.at ?? Number.POSITIVE_INFINITY;
}

/** Removes the byte order mark of a file, and the carriage return of a line. */
function withoutMarks(line: string, at: number): string {
  const text = at === 0 && line.startsWith('\ufeff') ? line.slice(1) : line;
  return text.endsWith('\r') ? text.slice(0, -1) : text;
}
