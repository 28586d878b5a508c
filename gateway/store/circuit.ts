/**
 * A circuit breaker. In front of the store it decides whether the store is called, and how often it is probed otherwise.
 * For the application it only tells when an outage begins and ends.
 */
import type { Clock, Millis } from '#shared/clock.ts';

const FAILURES_TO_OPEN = 3;
export const PROBE_MS: Millis = 250;
/** A store that answers with errors, or flaps, is probed less and less often, up to this interval. */
const PROBE_MS_MAX: Millis = 5000;
/** If an outage begins within this time after the last one, the store is flapping. */
const FLAPPING_MS: Millis = 10_000;

/** A time in which the store was not called, or the application did not answer. */
export interface Outage {
  readonly from: Millis;
  /** null while it lasts */
  readonly to: Millis | null;
}

export class Circuit {
  readonly #clock: Clock;
  #failuresInRow = 0;
  #lastOutage: Outage | null = null;
  #outages = 0;
  #probeMs: Millis = PROBE_MS;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the store is not called. */
  get isOpen(): boolean {
    return this.#lastOutage?.to === null;
  }

  /** null if the circuit has never opened */
  get lastOutage(): Outage | null {
    return this.#lastOutage;
  }

  /** Number of times that the circuit has opened. */
  get outages(): number {
    return this.#outages;
  }

  /** Time until the next probe. */
  get probeMs(): Millis {
    return this.#probeMs;
  }

  succeeded(): void {
    this.#failuresInRow = 0;
  }

  /**
   * @param isLost true if there is no connection or no answer, false for an error @returns whether the circuit must
   * open
   */
  failed(isLost: boolean): boolean {
    return ++this.#failuresInRow >= FAILURES_TO_OPEN || isLost;
  }

  /** Called if the server answers but cannot work yet. */
  probeFailed(): void {
    this.#probeMs = Math.min(2 * this.#probeMs, PROBE_MS_MAX);
  }

  /** @returns false if it was already open */
  open(): boolean {
    if (this.isOpen) return false;
    const from = this.#clock();
    const closedAt = this.#lastOutage?.to ?? Number.NEGATIVE_INFINITY;
    this.#lastOutage = { from, to: null };
    this.#outages++;
    if (from - closedAt < FLAPPING_MS) this.probeFailed();
    else this.#probeMs = PROBE_MS;
    return true;
  }

  /** @param to end of the outage @returns how long it was open */
  close(to: Millis = this.#clock()): Millis {
    const { from } = this.#lastOutage ?? { from: to };
    this.#lastOutage = { from, to };
    this.#failuresInRow = 0;
    return to - from;
  }
}
