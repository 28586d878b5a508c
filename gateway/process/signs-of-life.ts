/**
 * Notices workers that hang. It counts ticks instead of comparing times. So time in which the whole machine or the
 * parent of the workers stood still does not count.
 */
import type { Millis } from '#shared/clock.ts';

/** Interval of the ticks. Each worker sends at least one message in two of them. */
export const SIGN_OF_LIFE_MS: Millis = 1000;
/** Number of ticks without a sign of life after which a worker counts as silent. */
export const SILENT_TICKS = 10;
/** Number of such ticks after which a worker is lost. */
export const LOST_TICKS = 30;

interface Listeners<Worker> {
  readonly onSilent: (worker: Worker) => void;
  /** Called if a silent worker gives a sign of life again. */
  readonly onHeard: (worker: Worker) => void;
  readonly onLost: (worker: Worker) => void;
}

export class SignsOfLife<Worker> {
  readonly #listeners: Listeners<Worker>;
  /** Number of ticks since the last sign of life. */
  readonly #ticks = new Map<Worker, number>();

  constructor(listeners: Listeners<Worker>) {
    this.#listeners = listeners;
  }

  /** Whether a worker is silent. */
  get isSilent(): boolean {
    return this.#ticks.values().some((ticks) => ticks >= SILENT_TICKS);
  }

  heard(worker: Worker): void {
    if ((this.#ticks.get(worker) ?? 0) >= SILENT_TICKS) this.#listeners.onHeard(worker);
    this.#ticks.set(worker, 0);
  }

  forget(worker: Worker): void {
    this.#ticks.delete(worker);
  }

  tick(): void {
    for (const [worker, before] of this.#ticks) {
      const ticks = before + 1;
      this.#ticks.set(worker, ticks);
      if (ticks === SILENT_TICKS) this.#listeners.onSilent(worker);
      if (ticks === LOST_TICKS) this.#listeners.onLost(worker);
    }
  }
}
