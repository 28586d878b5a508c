/**
 * Who is banned, as this process knows it. Nothing is asked of it while nobody is; then it is one lookup by digest. It
 * outlives the store's absence: a ban that is known here holds until its end.
 */
import type { Millis } from '#shared/clock.ts';

/** Of all replicas together. */
export const BANS_MAX = 10_000;
export const BAN_DAYS_MAX = 30;
export const BAN_MS_MAX: Millis = BAN_DAYS_MAX * 86_400_000;

export class Bans {
  /** When each ends, on the clock of this process. */
  #endsAt = new Map<string, Millis>();

  get size(): number {
    return this.#endsAt.size;
  }

  /** @returns when the ban of this digest ends; 0 where there is none */
  endOf(digest: string, now: Millis): Millis {
    const endsAt = this.#endsAt.get(digest) ?? 0;
    if (endsAt > now) return endsAt;
    if (endsAt > 0) this.#endsAt.delete(digest);
    return 0;
  }

  set(digest: string, endsAt: Millis): void {
    this.#endsAt.set(digest, endsAt);
  }

  delete(digest: string): boolean {
    return this.#endsAt.delete(digest);
  }

  /** Takes what is known of all of them. */
  replace(endsAt: Map<string, Millis>): void {
    this.#endsAt = endsAt;
  }

  dropEnded(now: Millis): void {
    for (const [digest, endsAt] of this.#endsAt) if (endsAt <= now) this.#endsAt.delete(digest);
  }
}
