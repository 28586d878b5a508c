/** Shows the progress of commands that take longer than a second. Only on a terminal, and never on standard output. */
import type { Terminal } from '#shared/cli/terminal.ts';
import type { Millis } from '#shared/clock.ts';

const DELAY_MS: Millis = 1000;
const BETWEEN_MS: Millis = 200;
const MEBIBYTE = 1_048_576;
/** Returns to the beginning of the line, and erases it. */
const ERASED = '\r\u001b[K';

export class Progress {
  readonly #terminal: Terminal;
  readonly #now: () => Millis;
  readonly #begunAt: Millis;
  #shownAt: Millis | null = null;

  constructor(terminal: Terminal, now: () => Millis) {
    this.#terminal = terminal;
    this.#now = now;
    this.#begunAt = now();
  }

  /** @param total in bytes; 0 if unknown, then nothing is shown */
  at(done: number, total: number): void {
    const now = this.#now();
    const isDue = now >= (this.#shownAt === null ? this.#begunAt + DELAY_MS : this.#shownAt + BETWEEN_MS);
    if (!this.#terminal.isInteractive || total === 0 || !isDue) return;
    this.#shownAt = now;
    // The average speed, because the speed of the last moment varies too much.
    const seconds = Math.round(((now - this.#begunAt) / 1000) * (total / Math.max(1, done) - 1));
    const minutes = Math.floor(seconds / 60);
    const left = minutes === 0 ? `${seconds}s` : `${minutes}m${seconds % 60}s`;
    const [read, all] = [done, total].map((bytes) => Math.ceil(bytes / MEBIBYTE));
    const text = `${Math.floor((done / total) * 100)} % | ${read} of ${all} MiB | ${left} left`;
    this.#terminal.progressStream.write(ERASED + text);
  }

  end(): void {
    if (this.#shownAt !== null) this.#terminal.progressStream.write(ERASED);
  }
}
