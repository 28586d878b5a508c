/**
 * How long checks wait for the store before it counts as lost: their time budget, and a grace beyond it. Deciding
 * without a store that is only slow admits too much or too little, so the grace is longer than the stalls of a busy
 * machine.
 *
 * Only time in which this process ran is counted. It passes in ticks of a timer, and a late tick counts as one. After a
 * stall of this process the answer may already be in the socket, and after a stall of the machine the store has not run
 * either.
 */
import type { Clock, Millis } from '#shared/clock.ts';
import { CheckBudget, graceMs } from './check-budget.ts';

const TICK_MS_MAX: Millis = 10;

/** A check that waits for its answer. */
export interface Wait {
  /** Start of the wait, measured in time during which this process ran. */
  readonly askedAt: Millis;
  readonly onLost: () => void;
}

export class Patience {
  readonly #clock: Clock;
  readonly #budget: CheckBudget;
  readonly #graceMs: Millis;
  readonly #tickMs: Millis;
  /** Waiting checks, in the order in which they began. */
  readonly #waits = new Set<Wait>();
  #ranMs: Millis = 0;
  #tickedAt: Millis = 0;
  #isTicking = false;

  /** @param budgetMs the minimum of the budget */
  constructor(clock: Clock, budgetMs: Millis) {
    this.#clock = clock;
    this.#budget = new CheckBudget(clock, budgetMs);
    this.#graceMs = graceMs(budgetMs);
    this.#tickMs = Math.min(TICK_MS_MAX, budgetMs);
  }

  /** How long a check currently waits. */
  get waitMs(): Millis {
    return this.#budget.budgetMs + this.#graceMs;
  }

  /** @param onLost called at most once, and not after `answered` or `failed` */
  begin(onLost: () => void): Wait {
    if (!this.#isTicking) {
      this.#tickedAt = this.#clock();
      this.#arm();
    }
    const wait = { askedAt: this.#now, onLost };
    this.#waits.add(wait);
    return wait;
  }

  /** Records an answer, possibly after the check was given up. */
  answered(wait: Wait): void {
    this.#budget.note(this.#waits.delete(wait) ? this.#now - wait.askedAt : Number.POSITIVE_INFINITY);
  }

  failed(wait: Wait): void {
    this.#waits.delete(wait);
  }

  /** Gives up all waiting checks. */
  giveUp(): void {
    const waits = [...this.#waits];
    this.#waits.clear();
    for (const { onLost } of waits) onLost();
  }

  get #now(): Millis {
    return this.#ranMs + this.#sinceTickMs;
  }

  /** Time since the last tick. More than two ticks is a stall of this process, and counts as one tick. */
  get #sinceTickMs(): Millis {
    const sinceMs = this.#clock() - this.#tickedAt;
    return sinceMs >= 0 && sinceMs <= 2 * this.#tickMs ? sinceMs : this.#tickMs;
  }

  #arm(): void {
    this.#isTicking = true;
    setTimeout(() => this.#tick(), this.#tickMs);
  }

  #tick(): void {
    this.#ranMs += this.#sinceTickMs;
    this.#tickedAt = this.#clock();
    this.#isTicking = false;
    const [first] = this.#waits;
    if (first === undefined) return;
    this.#arm();
    if (this.#ranMs - first.askedAt < this.waitMs) return;
    // Timers run before sockets are read, so let a received answer be read first.
    setImmediate(() => {
      if (this.#waits.has(first)) this.giveUp();
    });
  }
}
