/**
 * The bans that this process knows. They hold until their end, also while the store is away.
 */
import type { Millis } from '#shared/clock.ts';

/** For all replicas together. */
export const BANS_MAX = 10_000;
/** Policies leave this room for operators. */
export const POLICY_BANS_MAX = 9000;
/** The newest lifted bans are remembered, so that nobody restores them. */
export const LIFTED_MAX = 10_000;
/** The longest ban by a policy, and how long it is remembered after its end. */
export const POLICY_BAN_MS_MAX: Millis = 7 * 86_400_000;
export const BAN_DAYS_MAX = 30;
export const BAN_MS_MAX: Millis = BAN_DAYS_MAX * 86_400_000;

export interface Ban {
  /** Milliseconds since the epoch. */
  readonly endsAt: Millis;
  /** '' if the operator gave none. */
  readonly reason: string;
  /** Row of the policy file that made it; null: an operator did. */
  readonly policy: string | null;
}

export interface ListedBan extends Ban {
  readonly digest: string;
}

/** A change that an operator has made in the store. */
export interface BanChange {
  readonly digest: string;
  /** null: it is lifted. */
  readonly ban: Ban | null;
  readonly version: number;
}

/** The newest bans first. */
export interface BanList {
  /** How many there are, also beyond those listed. */
  readonly total: number;
  readonly bans: readonly ListedBan[];
}

/** A ban in the store, without its end: the policy, if one made it, and the reason on the next line. */
export function noteOf({ reason, policy }: Pick<Ban, 'reason' | 'policy'>): string {
  return `${policy ?? ''}\n${reason}`;
}

export function readNote(note: string): Pick<Ban, 'reason' | 'policy'> {
  const at = note.indexOf('\n');
  return { reason: note.slice(at + 1), policy: at > 0 ? note.slice(0, at) : null };
}

export class Bans {
  /** By digest. Ends are on the clock of this process. */
  readonly #bans = new Map<string, Ban>();
  /** The version in the store of each ban. */
  readonly #versions = new Map<string, number>();
  readonly #lifted = new Map<string, number>();
  /** No ban ends before. */
  #nextEnd: Millis = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#bans.size;
  }

  /** @returns when the ban ends; 0: there is none */
  endOf(digest: string, now: Millis): Millis {
    return this.of(digest, now)?.endsAt ?? 0;
  }

  of(digest: string, now: Millis): Ban | null {
    const ban = this.#bans.get(digest);
    if (ban === undefined) return null;
    if (ban.endsAt > now) return ban;
    this.delete(digest);
    return null;
  }

  /** @param version of this change in the store; 0: there is none */
  set(digest: string, ban: Ban, version = 0): void {
    // The newest stands last.
    this.#bans.delete(digest);
    this.#bans.set(digest, ban);
    this.#versions.set(digest, version);
    this.#lifted.delete(digest);
    this.#nextEnd = Math.min(this.#nextEnd, ban.endsAt);
  }

  delete(digest: string): void {
    this.#bans.delete(digest);
    this.#versions.delete(digest);
  }

  /** @param version in which it was lifted; 0: it has ended */
  lift(digest: string, version: number): void {
    this.delete(digest);
    this.#lifted.delete(digest);
    if (version === 0) return;
    this.#lifted.set(digest, version);
    const [oldest] = this.#lifted.keys();
    if (this.#lifted.size > LIFTED_MAX && oldest !== undefined) this.#lifted.delete(oldest);
  }

  /** By digest, the oldest first. */
  get all(): ReadonlyMap<string, Ban> {
    return this.#bans;
  }

  /** The last change of each client: its ban, or that it was lifted. */
  *changes(): Generator<BanChange> {
    for (const [digest, version] of this.#lifted) yield { digest, ban: null, version };
    for (const [digest, ban] of this.#bans) yield { digest, ban, version: this.#versions.get(digest) ?? 0 };
  }

  clear(): void {
    this.#bans.clear();
    this.#versions.clear();
    this.#lifted.clear();
  }

  dropEnded(now: Millis): void {
    if (now < this.#nextEnd) return;
    this.#nextEnd = Number.POSITIVE_INFINITY;
    for (const [digest, { endsAt }] of this.#bans)
      if (endsAt <= now) this.delete(digest);
      else this.#nextEnd = Math.min(this.#nextEnd, endsAt);
  }
}
