/**
 * The clients denied most often, by digest, in a table of bounded size (space-saving algorithm): a new client takes the
 * place and the count of the one with the fewest denials. Counts only while somebody watches.
 */
import type { Millis } from '#shared/clock.ts';

export interface LimitedIdentity {
  readonly identity: string;
  /** An upper bound: it includes the count that the client took over. */
  readonly denied: number;
}

const IDENTITIES_MAX = 128;
const WATCHED_MS: Millis = 15_000;

export class Limited {
  readonly #counts = new Map<string, number>();
  #until: Millis = Number.NEGATIVE_INFINITY;

  isWatched(now: Millis): boolean {
    return now < this.#until;
  }

  /** Counts for some seconds more. @returns the clients denied most often, in descending order */
  watch(now: Millis): LimitedIdentity[] {
    if (!this.isWatched(now)) this.#counts.clear();
    this.#until = now + WATCHED_MS;
    return [...this.#counts]
      .map(([identity, denied]) => ({ identity, denied }))
      .sort((a, b) => b.denied - a.denied);
  }

  count(digest: string): void {
    const known = this.#counts.get(digest);
    if (known !== undefined || this.#counts.size < IDENTITIES_MAX) {
      this.#counts.set(digest, (known ?? 0) + 1);
      return;
    }
    let least = Number.POSITIVE_INFINITY;
    let victim = '';
    for (const [other, count] of this.#counts) {
      if (count >= least) continue;
      least = count;
      victim = other;
    }
    this.#counts.delete(victim);
    this.#counts.set(digest, least + 1);
  }
}
