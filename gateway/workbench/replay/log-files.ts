/**
 * Several logs as one: rotated parts of a log in whatever order they are named, and logs of several machines. They are
 * begun in the order of their first requests, and those that overlap are merged.
 */
import { statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { HeaderFields } from '#gateway/workbench/replay/formats/all.ts';
import type { FormatName } from '#gateway/workbench/replay/formats/logged-request.ts';
import type { Millis } from '#shared/clock.ts';
import { type LineCounts, LogFile, type LogLine } from './log-file.ts';

export interface LogFilesOptions {
  /** At most LOGS_MAX. */
  readonly files: readonly LogInput[];
  /** null: told from the first lines of each. */
  readonly format: FormatName | null;
  readonly headers: HeaderFields;
  /** Called now and then. @param bytesTotal 0 where it is not known */
  readonly onProgress: (bytesRead: number, bytesTotal: number) => void;
}

interface LogInput {
  readonly name: string;
  /** A path, or a stream such as standard input. */
  readonly input: string | Readable;
}

/** Each holds a portion of its text until its turn comes. */
export const LOGS_MAX = 64;

export class LogFiles {
  readonly counts: LineCounts = { lines: 0, unreadable: 0, samples: [] };
  /** Logs that could not be read to their end, and why. */
  readonly cutShort: string[] = [];
  readonly formats = new Set<FormatName>();
  readonly #options: LogFilesOptions;
  readonly #files: readonly LogFile[];
  readonly #bytesTotal: number;

  /** @throws the error of a file that is not there */
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
   * Hands out all lines, those of overlapping logs by their time.
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

  /** Hands out one log's lines up to a time. @returns false at its end */
  async #drain(file: LogFile, until: Millis, take: (line: LogLine) => void): Promise<boolean> {
    do {
      take(file);
      // Without waiting, as long as there are lines at hand.
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
