/** How often each number occurred, for percentiles. Small numbers exactly, large ones to three digits. */
export class Frequencies {
  readonly #times = new Map<number, number>();
  #total = 0;
  max = 0;

  add(value: number): void {
    const rounded = threeDigits(value);
    this.#times.set(rounded, (this.#times.get(rounded) ?? 0) + 1);
    this.#total++;
    if (value > this.max) this.max = value;
  }

  get total(): number {
    return this.#total;
  }

  /**
   * @param shares ascending, from 0 to 1
   * @returns for each, the smallest number that so many are not above; 0 where there are none
   */
  percentiles(shares: readonly number[]): readonly number[] {
    const sorted = [...this.#times].sort(([a], [b]) => a - b);
    const found: number[] = [];
    let seen = 0;
    for (const [value, times] of sorted) {
      seen += times;
      while (found.length < shares.length && seen >= this.#total * (shares[found.length] ?? 1))
        found.push(Math.min(value, this.max));
    }
    return shares.map((_, i) => found[i] ?? this.max);
  }

  /** How many are above a number. */
  above(limit: number): number {
    let above = 0;
    for (const [value, times] of this.#times) if (value > limit) above += times;
    return above;
  }
}

/** Rounded up, so that nobody seems to need less than it did. */
function threeDigits(value: number): number {
  let step = 1;
  while (value / step >= 1000) step *= 10;
  return Math.ceil(value / step) * step;
}
