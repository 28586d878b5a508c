/** A ledger of what was admitted and denied, worked out without the limiter's code. */
import type { Algorithm } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';

interface Admission {
  readonly id: number;
  readonly at: Millis;
  readonly value: string | null;
}

export class Ledger {
  readonly #algorithm: Algorithm;
  readonly #hasValues: boolean;
  readonly #limit: number;
  readonly #windowMs: Millis;
  #admitted: Admission[] = [];
  readonly #denied: Omit<Admission, 'id'>[] = [];

  /** @param hasValues whether different values count */
  constructor(algorithm: Algorithm, hasValues: boolean, limit: number, windowMs: Millis) {
    this.#algorithm = algorithm;
    this.#hasValues = hasValues;
    this.#limit = limit;
    this.#windowMs = windowMs;
  }

  admit(id: number, at: Millis, value: string | null): void {
    this.#admitted.push({ id, at, value });
    this.#admitted.sort((one, other) => one.at - other.at);
  }

  deny(at: Millis, value: string | null): void {
    this.#denied.push({ at, value });
  }

  /** A request is no longer in flight. */
  finish(id: number): void {
    if (this.#algorithm === 'concurrency') this.#admitted = this.#admitted.filter((one) => one.id !== id);
  }

  /** Units of the bucket that all admitted requests use together, as docs/policies-in-detail.md defines each algorithm. */
  usedAt(now: Millis): number {
    const earlier = this.#admitted.filter(({ at }) => at <= now);
    const times = earlier.map(({ at }) => at);
    const window = Math.floor(now / this.#windowMs);
    const countIn = (number: number): number => {
      const those = earlier.filter(({ at }) => Math.floor(at / this.#windowMs) === number);
      return this.#hasValues ? new Set(those.map(({ value }) => value)).size : those.length;
    };
    switch (this.#algorithm) {
      case 'concurrency':
        return times.length;
      case 'fixed-window':
      case 'calendar-window':
        return countIn(window);
      case 'sliding-window': {
        const left = this.#windowMs - (now % this.#windowMs);
        return countIn(window) + Math.ceil((countIn(window - 1) * left) / this.#windowMs);
      }
      case 'token-bucket': {
        let backlog = 0;
        let last = 0;
        for (const at of times) {
          backlog = Math.max(0, backlog - (at - last) * this.#limit) + this.#windowMs;
          last = at;
        }
        return Math.ceil(Math.max(0, backlog - (now - last) * this.#limit) / this.#windowMs);
      }
    }
  }

  /** A request was denied while there was room for it; null if none was. @param twice units that may be charged twice */
  wrongDenial(twice: number): string | null {
    // A place may be free before the store hears of it.
    if (this.#algorithm === 'concurrency') return null;
    for (const { at, value } of this.#denied) {
      if (this.usedAt(at) + twice < this.#limit)
        return `a request is denied while ${this.usedAt(at)} of ${this.#limit} are used, and ${twice} more at most`;
      if (value !== null && this.#isUsed(value, at)) return `${value} is denied, and was used before`;
    }
    return null;
  }

  #isUsed(value: string, now: Millis): boolean {
    const window = Math.floor(now / this.#windowMs);
    return this.#admitted.some(
      (one) => one.value === value && one.at <= now && Math.floor(one.at / this.#windowMs) === window,
    );
  }

  contents(now: Millis): string {
    const window = (at: Millis): number => Math.floor(at / this.#windowMs);
    const shown = ({ at, value }: Omit<Admission, 'id'>) => `${window(at)}${value ?? ''}`;
    return `${this.#admitted.map(shown)} ${this.usedAt(now)} ${this.#denied.map(shown)}`;
  }
}
