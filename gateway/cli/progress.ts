/** A bar for what takes longer than a second; on a terminal only, and never in the answer. */
import { SingleBar } from 'cli-progress';
import type { Terminal } from './terminal.ts';

const DELAY_MS = 1000;
const MIB = 1_048_576;

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

  /** @param total bytes; 0 where it is not known, and nothing is shown */
  at(done: number, total: number): void {
    if (!this.#terminal.isInteractive || total === 0) return;
    if (this.#bar === null) {
      if (this.#now() - this.#begunAt < DELAY_MS) return;
      this.#bar = new SingleBar({
        stream: this.#terminal.progressStream,
        format: '{bar} {percentage} % | {value} of {total} MiB | {eta_formatted} left',
        hideCursor: true,
        clearOnComplete: true,
      });
      this.#bar.start(Math.ceil(total / MIB), 0);
    }
    this.#bar.update(Math.floor(done / MIB));
  }

  end(): void {
    this.#bar?.stop();
    this.#bar = null;
  }
}
