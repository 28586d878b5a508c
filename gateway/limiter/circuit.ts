/** The circuit breaker in front of the store: whether it is asked at all, and how often it is probed while it is not. */
import type { Clock, Millis } from '#shared/clock.ts';

const FAILURES_TO_OPEN = 3;
export const PROBE_MS: Millis = 250;
/** A store that answers with errors, or comes and goes, is probed less and less often. */
const PROBE_MS_MAX: Millis = 5000;
/** An outage that begins so soon after the last one is the store's flapping. */
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

  /** null: it is closed, and the store is asked. */
  get openSince(): Millis | null {
    return this.#openSince;
  }

  /** How often it has opened. */
  get outages(): number {
    return this.#outages;
  }

  /** Until the next probe. */
  get probeMs(): Millis {
    return this.#probeMs;
  }

  succeeded(): void {
    this.#failuresInRow = 0;
  }

  /** @param isLost not just an error: there is no connection, or no answer @returns whether the circuit has to open */
  failed(isLost: boolean): boolean {
    return ++this.#failuresInRow >= FAILURES_TO_OPEN || isLost;
  }

  /** The server is there, and cannot do its work yet. */
  probeFailed(): void {
    this.#probeMs = Math.min(2 * this.#probeMs, PROBE_MS_MAX);
  }

  /** @returns false: it was open already */
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
