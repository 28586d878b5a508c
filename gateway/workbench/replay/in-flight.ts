/** Tracks requests of a log that are in flight, by the clock of the log. */
import type { Millis } from '#shared/clock.ts';

/**
 * Maximum number of tracked requests, more than a gateway has at once. Beyond it, the request that ends first is ended
 * early.
 */
const HELD_MAX = 65_536;

interface Held<T> {
  readonly endsAt: Millis;
  readonly what: T;
}

export class InFlight<T> {
  /** Requests in flight, sorted by their end. The last element ends first. */
  readonly #held: Held<T>[] = [];
  readonly #onEnd: (what: T) => void;

  constructor(onEnd: (what: T) => void) {
    this.#onEnd = onEnd;
  }

  add(what: T, endsAt: Millis): void {
    if (this.#held.length >= HELD_MAX) this.#endFirst();
    let low = 0;
    for (let high = this.#held.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((this.#held[middle]?.endsAt ?? 0) > endsAt) low = middle + 1;
      else high = middle;
    }
    this.#held.splice(low, 0, { endsAt, what });
  }

  /** Ends all requests that are over at this time. */
  endBy(now: Millis): void {
    while ((this.#held.at(-1)?.endsAt ?? Number.POSITIVE_INFINITY) <= now) this.#endFirst();
  }

  #endFirst(): void {
    const first = this.#held.pop();
    if (first !== undefined) this.#onEnd(first.what);
  }
}
