import type { Clock, Millis } from './clock.ts';

const DELAY_MS: Millis = 1000;
const DELAY_MS_MAX: Millis = 30_000;
/** A worker that has run for so long did not end of what ended the one before it. */
const CALM_MS: Millis = 60_000;

/** When a worker that ended is replaced: at once, and after longer and longer pauses while its successors end too. */
export class RestartPacing {
  readonly #clock: Clock;
  #endedAt: Millis = Number.NEGATIVE_INFINITY;
  #delayMs: Millis = 0;
  #endsInRow = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A worker has ended, or could not start. */
  ended(): { readonly delayMs: Millis; readonly endsInRow: number } {
    const now = this.#clock();
    if (now - this.#endedAt - this.#delayMs > CALM_MS) this.#endsInRow = 0;
    this.#delayMs = this.#endsInRow === 0 ? 0 : Math.min(DELAY_MS * 2 ** (this.#endsInRow - 1), DELAY_MS_MAX);
    this.#endedAt = now;
    this.#endsInRow++;
    return { delayMs: this.#delayMs, endsInRow: this.#endsInRow };
  }
}
