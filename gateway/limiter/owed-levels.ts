/** The same as owed.ts for counters that are no fixed windows. */
import type { Millis } from '#shared/clock.ts';
import type { Part } from './charge.ts';
import type { LevelDebt } from './general-check.ts';

/** About 200 bytes each. */
const ENTRIES_MAX = 20_000;

interface Entry {
  readonly part: Part;
  readonly window: number;
  units: number;
}

export class OwedLevels {
  readonly #entries = new Map<string, Entry>();
  /** What this process takes a token bucket to hold. */
  readonly #backlogOf: (part: Part) => number;

  constructor(backlogOf: (part: Part) => number) {
    this.#backlogOf = backlogOf;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** @param now on the store's clock */
  add(part: Part, units: number, now: Millis): void {
    const window = windowOf(part, now);
    this.#put(part, window, unitsOf(part, units));
  }

  /**
   * The store has charged so many units after all, at a moment of its clock: its answer was late.
   *
   * @returns how many of them nobody owed
   */
  paid(part: Part, units: number, now: Millis): number {
    const id = idOf(part, windowOf(part, now));
    const entry = this.#entries.get(id);
    if (entry === undefined) return units;
    const left = unitsOf(part, units) - entry.units;
    entry.units -= unitsOf(part, units);
    if (entry.units <= 0) this.#entries.delete(id);
    return Math.max(0, left) / unitsOf(part, 1);
  }

  /**
   * Takes out up to so many that still matter. Of a token bucket no more is owed than it still holds here: what it held
   * before the outage has been drained first, there as well as here.
   *
   * @param now on the store's clock
   */
  take(max: number, now: Millis): LevelDebt[] {
    const debts: LevelDebt[] = [];
    for (const [id, { part, window, units }] of this.#entries) {
      if (debts.length >= max) break;
      this.#entries.delete(id);
      const isBucket = part.policy.algorithm === 'token-bucket';
      const left = isBucket ? Math.min(units, this.#backlogOf(part)) : units;
      if (left > 0 && windowOf(part, now) - window <= 1) debts.push({ part, units: left, window });
    }
    return debts;
  }

  /** Puts back what could not be charged. */
  putBack(debts: readonly LevelDebt[]): void {
    for (const { part, units, window } of debts) this.#put(part, window, units);
  }

  #put(part: Part, window: number, units: number): void {
    const id = idOf(part, window);
    const entry = this.#entries.get(id);
    if (entry !== undefined) {
      entry.units += units;
      return;
    }
    if (this.#entries.size >= ENTRIES_MAX) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    this.#entries.set(id, { part, window, units });
  }
}

/** Of a sliding window the number of the aligned one. */
function windowOf({ policy: { algorithm, windowMs } }: Part, now: Millis): number {
  return algorithm === 'token-bucket' ? 0 : Math.floor(now / windowMs);
}

function unitsOf({ policy: { algorithm, windowMs } }: Part, units: number): number {
  return algorithm === 'token-bucket' ? units * windowMs : units;
}

function idOf({ key }: Part, window: number): string {
  return `${key} ${window}`;
}
