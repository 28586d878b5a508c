/**
 * Rows hold what operators and policies have changed, as this process knows it. Of two rows for the same name the later version
 * holds, so it does not matter in which order they arrive. A row that says that something was removed stays for a while:
 * without it, a process that had not heard of the removal could bring the ban back.
 */
import type { Millis } from '#shared/clock.ts';
import { type Bans, readNote } from './bans.ts';
import type { Shadows } from './shadows.ts';

/** `counters` names a client whose counters were cleared. Its rows are always removed ones. */
export type Kind = 'ban' | 'shadow' | 'counters';

export interface Row {
  readonly kind: Kind;
  /** Digest of the client, or its network; bucket of the policies in shadow mode. */
  readonly name: string;
  /** On the clock of this process; null if the row was removed. */
  readonly endsAt: Millis | null;
  readonly note: string;
  readonly version: number;
}

/** A row that is in force. */
export type ActiveRow = Row & { readonly endsAt: Millis };

/** Maximum number of removed rows, in the store and in each process. */
export const REMOVED_MAX = 1000;

export class Rows {
  readonly bans: Bans;
  readonly shadows: Shadows;
  /** Rows in force by name, oldest first. */
  readonly #active = { ban: new Map<string, ActiveRow>(), shadow: new Map<string, ActiveRow>() };
  /** Removed rows by kind and name, oldest first. */
  readonly #removed = new Map<string, Row>();
  /** No row ends before this time. */
  #nextEnd: Millis = Number.POSITIVE_INFINITY;

  constructor(bans: Bans, shadows: Shadows) {
    this.bans = bans;
    this.shadows = shadows;
  }

  get all(): Row[] {
    const { ban, shadow } = this.#active;
    return [...this.#removed.values(), ...ban.values(), ...shadow.values()];
  }

  /** Returns the rows in force by name, oldest first. Ended ones may be among them. */
  of(kind: 'ban' | 'shadow'): ReadonlyMap<string, ActiveRow> {
    return this.#active[kind];
  }

  take(rows: readonly Row[]): void {
    for (const row of rows) this.#take(row);
    if (rows.some(({ kind }) => kind === 'shadow')) this.#useShadows();
  }

  /** Takes these rows instead of all others. */
  replace(rows: readonly Row[]): void {
    for (const kind of ['ban', 'shadow'] as const) this.#active[kind].clear();
    this.#removed.clear();
    this.bans.clear();
    for (const row of rows) this.#take(row);
    this.#useShadows();
  }

  dropEnded(now: Millis): void {
    if (now < this.#nextEnd) return;
    this.#nextEnd = Number.POSITIVE_INFINITY;
    for (const kind of ['ban', 'shadow'] as const)
      for (const [name, { endsAt }] of this.#active[kind])
        if (endsAt > now) this.#nextEnd = Math.min(this.#nextEnd, endsAt);
        else this.#drop(kind, name);
  }

  #take(row: Row): void {
    const { kind, name, endsAt, note, version } = row;
    const key = `${kind} ${name}`;
    const known = this.#removed.get(key) ?? (kind === 'counters' ? undefined : this.#active[kind].get(name));
    if (known !== undefined && known.version > version) return;
    // A Map keeps the position of a known key. Delete it first, so that the newest row is last.
    this.#removed.delete(key);
    if (kind !== 'counters') this.#drop(kind, name);
    if (endsAt === null || kind === 'counters') {
      this.#removed.set(key, row);
      const [oldest] = this.#removed.keys();
      if (this.#removed.size > REMOVED_MAX && oldest !== undefined) this.#removed.delete(oldest);
      return;
    }
    this.#active[kind].set(name, { ...row, endsAt });
    if (kind === 'ban') this.bans.set(name, { endsAt, ...readNote(note) });
    this.#nextEnd = Math.min(this.#nextEnd, endsAt);
  }

  #drop(kind: 'ban' | 'shadow', name: string): void {
    this.#active[kind].delete(name);
    if (kind === 'ban') this.bans.delete(name);
  }

  #useShadows(): void {
    this.shadows.replace(
      new Map([...this.#active.shadow.values()].map(({ name, endsAt }) => [name, endsAt])),
    );
  }
}
