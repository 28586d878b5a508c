/**
 * Which clients most often? The space-saving algorithm: so many counters, and who has none takes the smallest one over
 * with its count. Counts are exact as long as there are no more clients than counters, and too high at worst beyond.
 */
const COUNTERS = 64;

export interface Frequent {
  /** A digest. */
  readonly identity: string;
  readonly count: number;
}

export class Most {
  readonly #counts = new Map<string, number>();
  #isExact = true;

  get isExact(): boolean {
    return this.#isExact;
  }

  add(identity: string): void {
    const count = this.#counts.get(identity);
    if (count !== undefined) {
      this.#counts.set(identity, count + 1);
      return;
    }
    let taken = 0;
    if (this.#counts.size >= COUNTERS) {
      this.#isExact = false;
      let least = '';
      taken = Number.POSITIVE_INFINITY;
      for (const [other, times] of this.#counts) {
        if (times < taken) {
          taken = times;
          least = other;
        }
      }
      this.#counts.delete(least);
    }
    // A copy: what is cut out of a log's line would keep the whole portion of the log.
    this.#counts.set(Buffer.from(identity, 'latin1').toString('latin1'), taken + 1);
  }

  /** The most frequent first. */
  list(max: number): readonly Frequent[] {
    return [...this.#counts]
      .map(([identity, count]) => ({ identity, count }))
      .sort((a, b) => b.count - a.count || (a.identity < b.identity ? -1 : 1))
      .slice(0, max);
  }
}
