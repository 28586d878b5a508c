/**
 * Computes the time budget of a check from recent answers of the store: four times the 99th percentile of the last
 * minute, in steps of the setting, from one to five steps.
 */
import type { Clock, Millis } from '#shared/clock.ts';

const STEPS_MAX = 5;
const BUDGET_PER_P99 = 4;
/** The last minute consists of this half and the previous one. */
const HALF_MS: Millis = 30_000;
/** Grace beyond the budget before the store counts as lost, in steps. */
const GRACE_STEPS = 10;

export class CheckBudget {
  readonly #clock: Clock;
  readonly #stepMs: Millis;
  /** Number of answers for each number of steps, in this half minute and in the previous one. */
  #answers = new Uint32Array(STEPS_MAX);
  #answersBefore = new Uint32Array(STEPS_MAX);
  #halfEndsAt: Millis = Number.NEGATIVE_INFINITY;

  /** @param stepMs the smallest budget */
  constructor(clock: Clock, stepMs: Millis) {
    this.#clock = clock;
    this.#stepMs = stepMs;
  }

  /** Records how long an answer took. */
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

/** Returns the time beyond the budget after which the store counts as lost. */
export function graceMs(stepMs: Millis): Millis {
  return GRACE_STEPS * stepMs;
}

/** Returns the longest time that a check can wait for the store. */
export function waitMsMax(stepMs: Millis): Millis {
  return (STEPS_MAX + GRACE_STEPS) * stepMs;
}
