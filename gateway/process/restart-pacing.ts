import type { Clock, Millis } from '#shared/clock.ts';

const DELAY_MS: Millis = 1000;
const DELAY_MS_MAX: Millis = 30_000;
/** If a worker ran this long, it probably ended for another reason than the previous one. */
const CALM_MS: Millis = 60_000;

/**
 * Decides when a worker that has ended is replaced: at once, then after growing pauses if its successors end as well.
 */
export class RestartPacing {
  readonly #clock: Clock;
  #endedAt: Millis = Number.NEGATIVE_INFINITY;
  #delayMs: Millis = 0;
  #endsInRow = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ended(): { readonly delayMs: Millis; readonly endsInRow: number } {
    const now = this.#clock();
    if (now - this.#endedAt - this.#delayMs > CALM_MS) this.#endsInRow = 0;
    this.#delayMs = this.#endsInRow === 0 ? 0 : Math.min(DELAY_MS * 2 ** (this.#endsInRow - 1), DELAY_MS_MAX);
    this.#endedAt = now;
    this.#endsInRow++;
    return { delayMs: this.#delayMs, endsInRow: this.#endsInRow };
  }
}
