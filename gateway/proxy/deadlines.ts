/**
 * Timeouts for the start of replies. All requests have the same timeout, so a linked list in order of arrival is sorted
 * by deadline, and one timer for its head is enough. Answered requests are removed at once: keeping them until their
 * deadline made each request 1.38 times as expensive, because the entries reached the old generation. With a Set in place
 * of the list, a request costs 1.6 times as much (hot, five rounds).
 */
import type { Clock, Millis } from '#shared/clock.ts';

export interface DeadlineEntry {
  /** 0 outside the list. */
  deadlineAt: Millis;
  earlier: DeadlineEntry | null;
  later: DeadlineEntry | null;
  /** Called after the timeout, when the entry is already removed. */
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
    // The timer is never cleared: when it fires, it is set again for the current head, if any.
    if (!this.#isArmed) this.#arm(this.#timeoutMs);
  }

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
    // Timers run before sockets are read, and after a busy moment replies may have arrived. So the check comes later in
    // the turn of the event loop. Each entry has a socket, which keeps the process alive.
    setTimeout(() => setImmediate(() => this.#check()), ms).unref();
  }

  #check(): void {
    const now = this.#clock();
    for (let entry = this.#first; entry !== null && entry.deadlineAt <= now; entry = this.#first) {
      this.delete(entry);
      entry.onDeadline();
    }
    // An entry that was added by one of these needs no second timer.
    this.#isArmed = false;
    if (this.#first !== null) this.#arm(Math.max(1, this.#first.deadlineAt - now));
  }
}
