/**
 * Timeouts for the start of replies. All requests have the same timeout, so a set in order of arrival is sorted by
 * deadline, and one timer for its first entry is enough. Answered requests are removed at once: keeping them until their
 * deadline made each request 1.38 times as expensive, because the entries reached the old generation.
 */
import type { Clock, Millis } from '#shared/clock.ts';

export interface DeadlineEntry {
  /** 0 outside of the set. */
  deadlineAt: Millis;
  /** Called after the timeout, when the entry is already removed. */
  onDeadline(): void;
}

export class Deadlines {
  readonly #timeoutMs: Millis;
  readonly #clock: Clock;
  readonly #entries = new Set<DeadlineEntry>();
  #isArmed = false;

  constructor(timeoutMs: Millis, clock: Clock) {
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  add(entry: DeadlineEntry): void {
    entry.deadlineAt = this.#clock() + this.#timeoutMs;
    this.#entries.add(entry);
    // The timer is never cleared: when it fires, it is set again for the first entry, if any.
    if (!this.#isArmed) this.#arm(this.#timeoutMs);
    this.#isArmed = true;
  }

  delete(entry: DeadlineEntry): void {
    if (entry.deadlineAt === 0) return;
    entry.deadlineAt = 0;
    this.#entries.delete(entry);
  }

  #arm(ms: Millis): void {
    // Timers run before sockets are read, and after a busy moment replies may have arrived. So the check comes later in
    // the turn of the event loop. Each entry has a socket, which keeps the process alive.
    setTimeout(() => setImmediate(() => this.#check()), ms).unref();
  }

  #check(): void {
    const now = this.#clock();
    for (const entry of this.#entries) {
      if (entry.deadlineAt > now) {
        this.#arm(Math.max(1, entry.deadlineAt - now));
        return;
      }
      this.delete(entry);
      entry.onDeadline();
    }
    this.#isArmed = false;
  }
}
