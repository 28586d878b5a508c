/**
 * Reads several logs as one: rotated parts of a log in any order, and logs of several machines. They are read in the
 * order of their first requests, and overlapping ones are merged.
 */
import { statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { HeaderFields } from '#gateway/workbench/replay/formats/all.ts';
import type { FormatName, LoggedRequest } from '#gateway/workbench/replay/formats/logged-request.ts';
import type { Millis } from '#shared/clock.ts';
import { type LineCounts, LogFile } from './log-file.ts';

export interface LogFilesOptions {
  /** The logs to read, at most LOGS_MAX. */
  readonly files: readonly LogInput[];
  /** Format of the logs; null to recognize it by the first lines of each. */
  readonly format: FormatName | null;
  readonly headers: HeaderFields;
  /** Called regularly. @param bytesTotal 0 if unknown */
  readonly onProgress: (bytesRead: number, bytesTotal: number) => void;
}

interface LogInput {
  readonly name: string;
  /** A path, or a stream such as standard input. */
  readonly input: string | Readable;
}

/** A log with its current request. */
interface Begun {
  readonly file: LogFile;
  request: LoggedRequest;
}

/** Maximum number of logs, because each holds a portion of its text while it waits. */
export const LOGS_MAX = 64;

export class LogFiles {
  readonly counts: LineCounts = { lines: 0, unreadable: 0, samples: [] };
  /** Logs that could not be read to their end, with the reason. */
  readonly cutShort: string[] = [];
  readonly formats = new Set<FormatName>();
  readonly #options: LogFilesOptions;
  readonly #files: readonly LogFile[];
  readonly #bytesTotal: number;

  /** @throws the error of a missing file */
  constructor(options: LogFilesOptions) {
    this.#options = options;
    const { files, format, headers } = options;
    const sizes = files.map(({ input }) => (typeof input === 'string' ? statSync(input).size : 0));
    this.#bytesTotal = sizes.includes(0) ? 0 : sizes.reduce((sum, size) => sum + size, 0);
    this.#files = files.map(
      ({ name, input }) => new LogFile({ name, input, format, headers, counts: this.counts }),
    );
  }

  /**
   * Calls back for all requests, ordered by time across overlapping logs.
   *
   * @throws UnknownFormatError, or the error of a file that cannot be read
   */
  async each(take: (request: LoggedRequest) => void): Promise<void> {
    try {
      const begun: Begun[] = [];
      for (const file of this.#files) {
        const request = await this.#nextOf(file);
        if (request !== null) begun.push({ file, request });
      }
      while (begun.length > 0) {
        begun.sort((a, b) => a.request.at - b.request.at);
        const [first, second] = begun;
        if (first === undefined) break;
        if (!(await this.#drain(first, second?.request.at ?? Number.POSITIVE_INFINITY, take))) begun.shift();
      }
    } finally {
      for (const file of this.#files) await file.close();
    }
  }

  /** Calls back for one log's requests up to a time. @returns false at its end */
  async #drain(log: Begun, until: Millis, take: (request: LoggedRequest) => void): Promise<boolean> {
    do {
      take(log.request);
      // Waits only if there is no further request in this portion.
      const next = log.file.next() ?? (await this.#nextOf(log.file));
      if (next === null) return false;
      log.request = next;
    } while (log.request.at <= until);
    return true;
  }

  /** @returns null at the end */
  async #nextOf(file: LogFile): Promise<LoggedRequest | null> {
    for (;;) {
      const request = file.next();
      if (request !== null) return request;
      const isOver = !(await file.more());
      if (isOver) break;
      const bytesRead = this.#files.reduce((sum, { text }) => sum + text.bytesRead, 0);
      this.#options.onProgress(bytesRead, this.#bytesTotal);
    }
    if (file.format !== null) this.formats.add(file.format);
    const { cutShort } = file.text;
    if (cutShort !== null) this.cutShort.push(`${file.name}: ${cutShort}`);
    return null;
  }
}
