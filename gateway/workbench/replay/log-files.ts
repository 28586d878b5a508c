/**
 * Reads several logs as one: rotated parts of a log in any order, and logs of several machines. They are read in the
 * order of their first requests, and overlapping ones are merged.
 */
import { statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { HeaderFields } from '#gateway/workbench/replay/formats/all.ts';
import type { FormatName } from '#gateway/workbench/replay/formats/logged-request.ts';
import type { Millis } from '#shared/clock.ts';
import { type LineCounts, LogFile, type LogLine } from './log-file.ts';

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
   * Calls back for all lines, ordered by time across overlapping logs.
   *
   * @throws UnknownFormatError, or the error of a file that cannot be read
   */
  async each(take: (line: LogLine) => void): Promise<void> {
    try {
      const begun: LogFile[] = [];
      for (const file of this.#files) if (await this.#advance(file)) begun.push(file);
      while (begun.length > 0) {
        begun.sort((a, b) => a.at - b.at);
        const [first, second] = begun;
        if (first === undefined) break;
        if (!(await this.#drain(first, second?.at ?? Number.POSITIVE_INFINITY, take))) begun.shift();
      }
    } finally {
      for (const file of this.#files) await file.close();
    }
  }

  /** Calls back for one log's lines up to a time. @returns false at its end */
  async #drain(file: LogFile, until: Millis, take: (line: LogLine) => void): Promise<boolean> {
    do {
      take(file);
      // Runs without waiting as long as lines are available.
      while (file.advance()) {
        if (file.at > until) return true;
        take(file);
      }
      if (!(await this.#advance(file))) return false;
    } while (file.at <= until);
    return true;
  }

  /** @returns false at the end */
  async #advance(file: LogFile): Promise<boolean> {
    while (!file.advance()) {
      if (!(await file.more())) {
        await file.close();
        if (file.format !== null) this.formats.add(file.format);
        if (file.cutShort !== null) this.cutShort.push(`${file.name}: ${file.cutShort}`);
        return false;
      }
      const bytesRead = this.#files.reduce((sum, other) => sum + other.bytesRead, 0);
      this.#options.onProgress(bytesRead, this.#bytesTotal);
    }
    return true;
  }
}
