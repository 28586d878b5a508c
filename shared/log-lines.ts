/**
 * Lines of a log on a file descriptor, usually standard error. Whatever takes them must not hold up requests, or end the
 * process: a full disk costs lines, and so does a reader that hangs. How many were lost is told when lines are taken again.
 *
 * Not pino's own destination: when it cannot write it ends the process, and while that ends it tries again for ever.
 */
import { fstatSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { type Logger, type LoggerOptions, pino } from 'pino';

export interface LogLinesOptions {
  readonly descriptor: number;
  /** Lines are taken again, and so many were lost before. */
  readonly onLost: (lines: number) => void;
  /** That a reader has not taken yet. */
  readonly waitingBytesMax?: number;
}

const WAITING_BYTES_MAX = 1_048_576;

export class LogLines {
  readonly #descriptor: number;
  readonly #onLost: (lines: number) => void;
  readonly #waitingBytesMax: number;
  /** null: a file or a terminal, which answers at once. */
  readonly #pipe: Socket | null;
  #lost = 0;
  /** The last line was cut by a full disk. */
  #isTorn = false;

  constructor({ descriptor, onLost, waitingBytesMax = WAITING_BYTES_MAX }: LogLinesOptions) {
    this.#descriptor = descriptor;
    this.#onLost = onLost;
    this.#waitingBytesMax = waitingBytesMax;
    this.#pipe = openPipe(descriptor);
    // Nobody reads any more: what follows is lost.
    this.#pipe?.on('error', () => undefined).unref();
  }

  /** As pino calls it. Never throws, and never waits. */
  write(line: string): void {
    if (this.#pipe === null) this.#writeFile(line);
    else this.#writePipe(this.#pipe, line);
  }

  /** Of a pipe; a file stays open. */
  close(): void {
    this.#pipe?.destroy();
  }

  #writePipe(pipe: Socket, line: string): void {
    if (!pipe.writable || pipe.writableLength + line.length > this.#waitingBytesMax) {
      this.#lost++;
      return;
    }
    pipe.write(line);
    if (this.#lost > 0 && pipe.writableLength === 0) this.#tellLost();
  }

  #writeFile(line: string): void {
    let rest: Buffer = Buffer.from(this.#isTorn ? `\n${line}` : line);
    const { length } = rest;
    try {
      while (rest.length > 0) rest = rest.subarray(writeSync(this.#descriptor, rest));
      this.#isTorn = false;
    } catch {
      this.#isTorn ||= rest.length < length;
      this.#lost++;
      return;
    }
    if (this.#lost > 0) this.#tellLost();
  }

  #tellLost(): void {
    const lost = this.#lost;
    this.#lost = 0;
    this.#onLost(lost);
  }
}

/** The log of this process, on standard error. Standard output is for people: that nobody reads it is no fault either. */
export function openLog(options: LoggerOptions): Logger {
  process.stdout.on('error', () => undefined);
  const lines = new LogLines({
    descriptor: 2,
    onLost: (lost) =>
      log.warn({ lost }, 'lines of this log were lost: what takes them was full, or did not read'),
  });
  const log: Logger = pino(options, lines);
  return log;
}

/** @returns null for what is no pipe */
function openPipe(descriptor: number): Socket | null {
  try {
    const kind = fstatSync(descriptor);
    // Written by the event loop: a reader that hangs leaves no thread behind that the end of the process would wait for.
    return kind.isFIFO() || kind.isSocket() ? new Socket({ fd: descriptor, readable: false }) : null;
  } catch {
    return null;
  }
}
