/**
 * Who is denied most, by digest, in a table of bounded size (the space-saving algorithm): a newcomer takes the place and
 * the count of whoever has least. Counted only while somebody looks.
 */
import type { Millis } from '#shared/clock.ts';

export interface LimitedIdentity {
  /** Digest. */
  readonly identity: string;
  /** At most; less by what it took over from whoever had its place. */
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

  /** Somebody looks: counting begins, or goes on. @returns those denied most, the first one most */
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
