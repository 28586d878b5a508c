/**
 * The circuit breaker in front of the store. It decides whether the store is called, and how often it is probed
 * otherwise.
 */
import type { Clock, Millis } from '#shared/clock.ts';

const FAILURES_TO_OPEN = 3;
export const PROBE_MS: Millis = 250;
/** A store that answers with errors, or flaps, is probed less and less often, up to this interval. */
const PROBE_MS_MAX: Millis = 5000;
/** If an outage begins within this time after the last one, the store is flapping. */
const FLAPPING_MS: Millis = 10_000;

export class Circuit {
  readonly #clock: Clock;
  #failuresInRow = 0;
  #openSince: Millis | null = null;
  #outages = 0;
  #closedAt: Millis = Number.NEGATIVE_INFINITY;
  #probeMs: Millis = PROBE_MS;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Time at which the circuit opened. null while it is closed, so the store is called. */
  get openSince(): Millis | null {
    return this.#openSince;
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
    if (this.#openSince !== null) return false;
    this.#openSince = this.#clock();
    this.#outages++;
    if (this.#openSince - this.#closedAt < FLAPPING_MS) this.probeFailed();
    else this.#probeMs = PROBE_MS;
    return true;
  }

  /** @returns how long it was open */
  close(): Millis {
    const now = this.#clock();
    const openMs = now - (this.#openSince ?? now);
    this.#openSince = null;
    this.#closedAt = now;
    this.#failuresInRow = 0;
    return openMs;
  }
}
