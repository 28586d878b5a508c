/** A progress bar for commands that take longer than a second. Only on a terminal, and never on standard output. */
import { SingleBar } from 'cli-progress';
import type { Terminal } from '#shared/cli/terminal.ts';

const DELAY_MS = 1000;

const MEBIBYTE = 1_048_576;

export class Progress {
  readonly #terminal: Terminal;
  readonly #now: () => number;
  readonly #begunAt: number;
  #bar: SingleBar | null = null;

  constructor(terminal: Terminal, now: () => number) {
    this.#terminal = terminal;
    this.#now = now;
    this.#begunAt = now();
  }

  /** @param total in bytes; 0 if unknown, then nothing is shown */
  at(done: number, total: number): void {
    if (!this.#terminal.isInteractive || total === 0) return;
    if (this.#bar === null) {
      if (this.#now() - this.#begunAt < DELAY_MS) return;
      this.#bar = new SingleBar({
        stream: this.#terminal.progressStream,
        format: '{bar} {percentage} % | {value} of {total} MiB | {left} left',
        hideCursor: true,
        clearOnComplete: true,
      });
      this.#bar.start(Math.ceil(total / MEBIBYTE), 0, { left: '' });
    }
    this.#bar.update(Math.floor(done / MEBIBYTE), { left: this.#left(done, total) });
  }

  /** Estimates the remaining time from the average speed, because the speed of the last moment varies too much. */
  #left(done: number, total: number): string {
    const seconds = Math.round(((this.#now() - this.#begunAt) / 1000) * (total / Math.max(1, done) - 1));
    const minutes = Math.floor(seconds / 60);
    return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds % 60}s`;
  }

  end(): void {
    this.#bar?.stop();
    this.#bar = null;
  }
}
