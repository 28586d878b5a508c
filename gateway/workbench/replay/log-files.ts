/**
 * Reads several logs as one, in the order of time: rotated parts of a log in any order, and logs of several machines.
 * Several workers write to one log, and a line is written when its reply ends. So a slow request comes after fast ones
 * that arrived later.
 */
import { statSync } from 'node:fs';
import type { Millis } from '#shared/clock.ts';
import type { FormatName, HeaderFields } from './formats/formats.ts';
import type { LoggedRequest } from './formats/logged-request.ts';
import { type LineCounts, LogFile, type LogInput } from './log-file.ts';

export interface LogFilesOptions {
  /** The logs to read, at most LOGS_MAX. */
  readonly files: readonly LogInput[];
  /** Format of the logs; null to recognize it by the first lines of each. */
  readonly format: FormatName | null;
  readonly headers: HeaderFields;
  /** Called regularly. @param bytesTotal 0 if unknown */
  readonly onProgress: (bytesRead: number, bytesTotal: number) => void;
}

/** A log with the requests of its current portion. */
interface Begun {
  readonly file: LogFile;
  readonly portions: AsyncIterator<readonly LoggedRequest[], undefined>;
  requests: readonly LoggedRequest[];
  next: number;
}

/** Receives the requests. The time never decreases. */
type TakeRequest = (request: LoggedRequest, at: Millis) => void;

/** Maximum number of logs, because each holds a portion of its text while it waits. */
export const LOGS_MAX = 64;
/** Maximum number of later requests that may come before a line. */
const LINES_BEHIND_MAX = 65_536;
/** Number of requests that are sorted and passed on at once. */
const BATCH = 8192;

export class LogFiles {
  readonly counts: LineCounts = { lines: 0, unreadable: 0, samples: [] };
  /** Logs that could not be read to their end, with the reason. */
  readonly cutShort: string[] = [];
  readonly formats = new Set<FormatName>();
  /** Requests that came too late after younger ones. They are counted at the time of those. */
  late = 0;
  readonly #files: readonly LogFile[];
  readonly #bytesTotal: number;
  readonly #onProgress: LogFilesOptions['onProgress'];
  readonly #held: { readonly at: Millis; readonly request: LoggedRequest }[] = [];
  #now: Millis = Number.NEGATIVE_INFINITY;

  /** @throws the error of a missing file */
  constructor({ files, format, headers, onProgress }: LogFilesOptions) {
    this.#onProgress = onProgress;
    const sizes = files.map(({ input }) => (typeof input === 'string' ? statSync(input).size : 0));
    this.#bytesTotal = sizes.includes(0) ? 0 : sizes.reduce((sum, size) => sum + size, 0);
    this.#files = files.map((file) => new LogFile(file, format, headers, this.counts));
  }

  /**
   * Calls back for all requests, ordered by time.
   *
   * @throws UnknownFormatError, or the error of a file that cannot be read
   */
  async each(take: TakeRequest): Promise<void> {
    const all = this.#files.map(
      (file): Begun => ({ file, portions: file.portions(), requests: [], next: 0 }),
    );
    try {
      const open: Begun[] = [];
      for (const log of all) if (await this.#fill(log)) open.push(log);
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
        if (!(await this.#fill(first))) open.shift();
      }
      this.#handOut(this.#held.length, take);
    } finally {
      for (const { portions } of all) await portions.return?.(undefined);
    }
  }

  /** Reads a further portion if the log needs one. @returns false at its end */
  async #fill(log: Begun): Promise<boolean> {
    while (log.next === log.requests.length) {
      const { value } = await log.portions.next();
      const { format, state, name } = log.file;
      if (value === undefined) {
        if (format !== null) this.formats.add(format);
        if (state.cutShort !== null) this.cutShort.push(`${name}: ${state.cutShort}`);
        return false;
      }
      log.requests = value;
      log.next = 0;
      const bytesRead = this.#files.reduce((sum, file) => sum + file.state.bytesRead, 0);
      this.#onProgress(bytesRead, this.#bytesTotal);
    }
    return true;
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

/** Returns the time of the next request. */
function timeOf({ requests, next }: Begun): Millis {
  return requests[next]?.at ?? Number.POSITIVE_INFINITY;
}
