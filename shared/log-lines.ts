/**
 * Writes log lines to a file descriptor, usually standard error. The log must neither delay requests nor end the
 * process: if the disk is full or the reader hangs, lines are dropped. Their number is logged once writing works again.
 *
 * pino's own destination is not used: if it cannot write, it ends the process and retries forever while doing so.
 */
import { fstatSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { type Logger, type LoggerOptions, pino } from 'pino';

interface LogLinesOptions {
  readonly descriptor: number;
  /** Called with the number of dropped lines once writing works again. */
  readonly onLost: (lines: number) => void;
  /** Limit for lines that the reader has not accepted yet. */
  readonly waitingBytesMax?: number;
}

const WAITING_BYTES_MAX = 1_048_576;

export class LogLines {
  readonly #descriptor: number;
  readonly #onLost: (lines: number) => void;
  readonly #waitingBytesMax: number;
  /** The pipe; null for a file or a terminal, which is written synchronously. */
  readonly #pipe: Socket | null;
  #lost = 0;
  /** Whether a full disk has cut the last line. */
  #isTorn = false;

  constructor({ descriptor, onLost, waitingBytesMax = WAITING_BYTES_MAX }: LogLinesOptions) {
    this.#descriptor = descriptor;
    this.#onLost = onLost;
    this.#waitingBytesMax = waitingBytesMax;
    this.#pipe = openPipe(descriptor);
    // EPIPE: the reader has gone, and further lines are dropped.
    this.#pipe?.on('error', () => undefined).unref();
  }

  /** Called by pino. Never throws or blocks. */
  write(line: string): void {
    if (this.#pipe === null) this.#writeFile(line);
    else this.#writePipe(this.#pipe, line);
  }

  close(): void {
    this.#pipe?.destroy();
  }

  #writePipe(pipe: Socket, line: string): void {
    if (!pipe.writable || pipe.writableLength + line.length > this.#waitingBytesMax) {
      this.#lost++;
      return;
    }
    pipe.write(line);
    if (this.#lost > 0 && pipe.writableLength === 0) this.#reportLost();
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
    if (this.#lost > 0) this.#reportLost();
  }

  #reportLost(): void {
    const lost = this.#lost;
    this.#lost = 0;
    this.#onLost(lost);
  }
}

/** Opens the log of this process, on standard error. A reader that closes standard output causes no error either. */
export function openLog(options: LoggerOptions): Logger {
  process.stdout.on('error', () => undefined);
  const lines = new LogLines({
    descriptor: 2,
    onLost: (lost) =>
      log.warn({ lost }, 'lines of this log were lost: the disk was full, or the reader too slow'),
  });
  const log: Logger = pino(options, lines);
  return log;
}

/** @returns null unless the descriptor is a pipe or a socket */
function openPipe(descriptor: number): Socket | null {
  try {
    const kind = fstatSync(descriptor);
    // The event loop writes a pipe that is a Socket. A blocking write in a thread would keep the process alive.
    return kind.isFIFO() || kind.isSocket() ? new Socket({ fd: descriptor, readable: false }) : null;
  } catch {
    return null;
  }
}
