/**
 * The time budget of a check follows what the store has needed lately: four times the 99th percentile of the last minute,
 * in steps of the setting, from one to five of them.
 */
import type { Clock, Millis } from '#shared/clock.ts';

const STEPS_MAX = 5;
const BUDGET_PER_P99 = 4;
/** The last minute is this half and the one before. */
const HALF_MS: Millis = 30_000;
/** The grace of a store that is later than the budget, in steps. */
const GRACE_STEPS = 10;

export class CheckBudget {
  readonly #clock: Clock;
  readonly #stepMs: Millis;
  /** How many answers needed so many steps, in this half minute and in the one before. */
  #answers = new Uint32Array(STEPS_MAX);
  #answersBefore = new Uint32Array(STEPS_MAX);
  #halfEndsAt: Millis = Number.NEGATIVE_INFINITY;

  /** @param stepMs the smallest budget */
  constructor(clock: Clock, stepMs: Millis) {
    this.#clock = clock;
    this.#stepMs = stepMs;
  }

  /** The store has answered. */
  note(tookMs: Millis): void {
    this.#turnHalves();
    const steps = Math.ceil((BUDGET_PER_P99 * tookMs) / this.#stepMs);
    const at = Math.min(Math.max(steps, 1), STEPS_MAX) - 1;
    this.#answers[at] = (this.#answers[at] ?? 0) + 1;
  }

  get budgetMs(): Millis {
    this.#turnHalves();
    let slower = 0;
    for (let at = 0; at < STEPS_MAX; at++) slower += this.#count(at);
    const slowerMax = slower / 100;
    let steps = 1;
    for (slower -= this.#count(0); slower > slowerMax; steps++) slower -= this.#count(steps);
    return steps * this.#stepMs;
  }

  #count(at: number): number {
    return (this.#answers[at] ?? 0) + (this.#answersBefore[at] ?? 0);
  }

  #turnHalves(): void {
    const now = this.#clock();
    if (now < this.#halfEndsAt) return;
    const isNext = now < this.#halfEndsAt + HALF_MS;
    this.#answersBefore = isNext ? this.#answers : new Uint32Array(STEPS_MAX);
    this.#answers = new Uint32Array(STEPS_MAX);
    this.#halfEndsAt = now + HALF_MS;
  }
}

/** How much later than its budget the store may be before it is lost; also how long a heartbeat may take. */
export function graceMs(stepMs: Millis): Millis {
  return GRACE_STEPS * stepMs;
}

/** No check waits longer for the store. */
export function waitMsMax(stepMs: Millis): Millis {
  return (STEPS_MAX + GRACE_STEPS) * stepMs;
}
