/**
 * Access log: one JSON line for each request, after its reply has ended or was cut (docs/operating.md).
 *
 * Lines are written in whole batches, so the lines of several workers do not mix. If the disk is full or the reader too
 * slow, lines are dropped and counted; no request waits for its line.
 */
import { closeSync, constants, openSync } from 'node:fs';
import sonic, { type SonicBoom } from 'sonic-boom';
import type { EntryLog, LogLine } from '#gateway/observe/log-line.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { ConfigError } from '#shared/configuration.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';
import { LINE_BYTES_MAX, lineText } from './line-text.ts';

interface AccessLogOptions {
  /** Path of a file, or - for standard output. */
  readonly file: string;
  /** Part of all requests that get a line, from 0 to 1. */
  readonly share: number;
  readonly clock: Clock;
  readonly warn: (fields: object, message: string) => void;
}

const QUEUE_BYTES_MAX = 4_194_304;
/** Less than WRITE_BYTES_MAX, so that a batch is one write. */
const BATCH_BYTES = 32_768;
const WRITE_BYTES_MAX = 65_536;
const FLUSH_MS: Millis = 100;
const END_MS: Millis = 1000;
/** Multiples of the golden ratio, modulo 1, are spread evenly, so the sample follows no pattern of the clients. */
const GOLDEN = 0.618_033_988_749_895;

export class AccessLog implements EntryLog {
  readonly #options: AccessLogOptions;
  readonly #destination: SonicBoom;
  #phase = 0;
  #isClosed = false;
  /** Number of dropped lines. */
  lost = 0;

  constructor(options: AccessLogOptions) {
    this.#options = options;
    const { file } = options;
    const warn = onceAMinute(options.clock, (reason: string) =>
      options.warn({ file, reason }, 'the access log cannot be written'),
    );
    const isFile = file !== '-';
    if (isFile) assertWritable(file);
    // pino's destination would also write the queue when the process ends, and wait forever if the disk is full.
    this.#destination = new sonic.SonicBoom({
      dest: isFile ? file : 1,
      sync: false,
      minLength: isFile ? BATCH_BYTES : LINE_BYTES_MAX - 1,
      maxWrite: isFile ? WRITE_BYTES_MAX : LINE_BYTES_MAX,
      maxLength: QUEUE_BYTES_MAX,
      periodicFlush: FLUSH_MS,
    });
    this.#destination.on('drop', () => {
      this.lost++;
      warn('lines are lost because the reader is too slow');
    });
    this.#destination.on('error', (error: Error) => warn(error.message));
  }

  /** Whether the next request gets a line. Advances the sample. */
  takes(): boolean {
    const { share } = this.#options;
    if (share >= 1) return true;
    this.#phase = (this.#phase + GOLDEN) % 1;
    return this.#phase < share;
  }

  write(line: LogLine): void {
    if (!this.#isClosed) this.#destination.write(lineText(line));
  }

  /** Opens a new file after log rotation has moved the old one. */
  reopen(): void {
    if (this.#options.file !== '-' && !this.#isClosed) this.#destination.reopen();
  }

  /** Writes the queue, for at most a second. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        this.#destination.destroy();
        resolve();
      }, END_MS);
      this.#destination.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
      this.#destination.end();
    });
  }
}

const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK } = constants;

function assertWritable(file: string): void {
  try {
    // Without O_NONBLOCK, a pipe that nobody reads would make the process wait.
    closeSync(openSync(file, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK));
  } catch (error) {
    throw new ConfigError([
      `GATEWAY_ACCESS_LOG: ${file} cannot be written (${(error as NodeJS.ErrnoException).code}); name a file in an existing folder that the gateway may write to`,
    ]);
  }
}
