/** How often each number occurred, for percentiles. */
export class Frequencies {
  readonly #times = new Map<number, number>();
  #total = 0;
  max = 0;

  add(value: number): void {
    this.#times.set(value, (this.#times.get(value) ?? 0) + 1);
    this.#total++;
    if (value > this.max) this.max = value;
  }

  get total(): number {
    return this.#total;
  }

  /**
   * @param shares ascending, from 0 to 1
   * @returns for each share, the smallest value that this share of all values does not exceed; 0 without values
   */
  percentiles(shares: readonly number[]): readonly number[] {
    const sorted = [...this.#times].sort(([a], [b]) => a - b);
    const found: number[] = [];
    let seen = 0;
    for (const [value, times] of sorted) {
      seen += times;
      while (found.length < shares.length && seen >= this.#total * (shares[found.length] ?? 1))
        found.push(value);
    }
    return shares.map((_, i) => found[i] ?? this.max);
  }
}
