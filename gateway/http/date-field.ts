/** Returns the value of the Date field (RFC 9110 6.6.1), formatted once a second. */
import type { Clock, Seconds } from '#shared/clock.ts';

export class DateField {
  readonly #wallClock: Clock;
  #text = '';
  #second: Seconds = -1;

  constructor(wallClock: Clock) {
    this.#wallClock = wallClock;
  }

  text(): string {
    const second = Math.floor(this.#wallClock() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#text = new Date(second * 1000).toUTCString();
    }
    return this.#text;
  }
}
