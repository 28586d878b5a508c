/**
 * The clients denied most often, by digest, in tables of bounded size (space-saving algorithm): a new client takes the
 * place and the count of the one with the fewest denials. Every half hour a new table begins, and the one before it stays
 * readable. So the counts cover the last 30 to 60 minutes. The tables change at the same time in all processes.
 */
import type { Millis } from '#shared/clock.ts';

export interface LimitedIdentity {
  readonly identity: string;
  /** An upper bound, because it includes the count that the client took over. */
  readonly denied: number;
  /** The policy of its last denial. */
  readonly policy: string;
  /** The time of its last denial. */
  readonly lastAt: Millis;
}

const IDENTITIES_MAX = 256;
const TABLE_MS: Millis = 1_800_000;

/** @returns the start of the time that the tables cover, unless the gateway started later */
export function limitedSince(now: Millis): Millis {
  return (Math.floor(now / TABLE_MS) - 1) * TABLE_MS;
}

export class Limited {
  #table = new Table();
  #before = new Table();
  #endsAt: Millis = 0;

  count(identity: string, policy: string, now: Millis): void {
    this.#turn(now);
    this.#table.count(identity, policy, now);
  }

  /** @returns the clients denied most often, in descending order */
  list(now: Millis): LimitedIdentity[] {
    this.#turn(now);
    return mergeLimited([this.#table.list(), this.#before.list()]);
  }

  #turn(now: Millis): void {
    if (now < this.#endsAt) return;
    this.#before = now < this.#endsAt + TABLE_MS ? this.#table : new Table();
    this.#table = new Table();
    this.#endsAt = (Math.floor(now / TABLE_MS) + 1) * TABLE_MS;
  }
}

/** Adds the counts of each client. @returns the clients denied most often, in descending order */
export function mergeLimited(lists: readonly (readonly LimitedIdentity[])[]): LimitedIdentity[] {
  const merged = new Map<string, LimitedIdentity>();
  for (const one of lists.flat()) {
    const other = merged.get(one.identity);
    const later = other !== undefined && other.lastAt > one.lastAt ? other : one;
    merged.set(one.identity, { ...later, denied: one.denied + (other?.denied ?? 0) });
  }
  return [...merged.values()].sort((a, b) => b.denied - a.denied);
}

/** Arrays instead of objects: a flood from many addresses searches for the smallest count with each denial. */
class Table {
  readonly #slots = new Map<string, number>();
  readonly #identities: string[] = [];
  readonly #policies: string[] = [];
  readonly #counts = new Float64Array(IDENTITIES_MAX);
  readonly #lastAt = new Float64Array(IDENTITIES_MAX);

  count(identity: string, policy: string, now: Millis): void {
    const slot = this.#slots.get(identity) ?? this.#take(identity);
    this.#counts[slot] = (this.#counts[slot] ?? 0) + 1;
    this.#policies[slot] = policy;
    this.#lastAt[slot] = now;
  }

  list(): LimitedIdentity[] {
    return this.#identities.map((identity, slot) => ({
      identity,
      denied: this.#counts[slot] ?? 0,
      policy: this.#policies[slot] ?? '',
      lastAt: this.#lastAt[slot] ?? 0,
    }));
  }

  #take(identity: string): number {
    const isFull = this.#identities.length >= IDENTITIES_MAX;
    const slot = isFull ? this.#smallest() : this.#identities.length;
    this.#slots.delete(this.#identities[slot] ?? '');
    this.#slots.set(identity, slot);
    this.#identities[slot] = identity;
    return slot;
  }

  #smallest(): number {
    let found = 0;
    for (let slot = 1; slot < IDENTITIES_MAX; slot++)
      if ((this.#counts[slot] ?? 0) < (this.#counts[found] ?? 0)) found = slot;
    return found;
  }
}
