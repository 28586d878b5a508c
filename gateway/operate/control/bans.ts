/**
 * Who is banned, as this process knows it. Nothing is asked of it while nobody is; then it is one lookup by digest. It
 * outlives the store's absence: a ban that is known here holds until its end.
 */
import type { Millis } from '#shared/clock.ts';

/** Of all replicas together. */
export const BANS_MAX = 10_000;
export const BAN_DAYS_MAX = 30;
export const BAN_MS_MAX: Millis = BAN_DAYS_MAX * 86_400_000;

export interface Ban {
  /** Milliseconds since the epoch. */
  readonly endsAt: Millis;
  /** As the operator gave it; '' when none was given. */
  readonly reason: string;
}

export class Bans {
  /** By digest; they end on the clock of this process. */
  #bans = new Map<string, Ban>();

  get size(): number {
    return this.#bans.size;
  }

  /** @returns when the ban of this digest ends; 0 where there is none */
  endOf(digest: string, now: Millis): Millis {
    return this.of(digest, now)?.endsAt ?? 0;
  }

  of(digest: string, now: Millis): Ban | null {
    const ban = this.#bans.get(digest);
    if (ban === undefined) return null;
    if (ban.endsAt > now) return ban;
    this.#bans.delete(digest);
    return null;
  }

  set(digest: string, ban: Ban): void {
    this.#bans.set(digest, ban);
  }

  delete(digest: string): boolean {
    return this.#bans.delete(digest);
  }

  /** By digest. */
  get all(): ReadonlyMap<string, Ban> {
    return this.#bans;
  }

  /** Takes what is known of all of them. */
  replace(bans: Map<string, Ban>): void {
    this.#bans = bans;
  }

  dropEnded(now: Millis): void {
    for (const [digest, { endsAt }] of this.#bans) if (endsAt <= now) this.#bans.delete(digest);
  }
}
